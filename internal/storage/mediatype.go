package storage

import (
	"bytes"
	"strings"
)

// The media types that the gateway itself reads or writes.
const (
	JSON     = "application/json"
	YAML     = "application/yaml"
	Protobuf = "application/vnd.kubernetes.protobuf"
	CBOR     = "application/cbor"

	JSONPatchType           = "application/json-patch+json"
	MergePatchType          = "application/merge-patch+json"
	StrategicMergePatchType = "application/strategic-merge-patch+json"
	ApplyPatchType          = "application/apply-patch+yaml"
	ApplyPatchCBORType      = "application/apply-patch+cbor"
)

// MediaTypes are the media types of a resource, each a list as messages show it.
type MediaTypes struct {
	// Objects are the types that an object may be sent in, Patches the types of patches.
	Objects, Patches string
	// Untyped is the type of an object that comes without a Content-Type; "" refuses it. A patch has to name its
	// language.
	Untyped string
	// Encodings are the codings that a body may be encoded in.
	Encodings string
	// Answers are the types that a client must take one of; "" leaves it to the backend.
	Answers string
	// CBOR is set if objects and configurations to apply may be CBOR too. Messages do not show it, for most servers
	// refuse it.
	CBOR bool
	// Unread is set if bodies that no policy or schema judges pass as they came.
	Unread bool
	// Errors are the types in which an error of the backend passes as it is; Anything is all of them.
	Errors string
}

// Anything is a list with every media type.
const Anything = "*/*"

// ShownPatches returns the types of patches that a message shows: the ones that every resource has, if some depend on
// the resource's schema.
func (t *MediaTypes) ShownPatches() string {
	if shown, found := strings.CutSuffix(t.Patches, ", "+StrategicMergePatchType); found {
		return shown
	}
	return t.Patches
}

// Has reports whether a list of media types has one.
func Has(list, mediaType string) bool {
	if list == Anything {
		return true
	}
	for one := range strings.SplitSeq(list, ", ") {
		if one == mediaType {
			return true
		}
	}
	return false
}

// AcceptsOtherJSON reports whether an Accept header names a media type in which an ordinary API may show a part of its
// objects: one that is based on JSON, a vendor's, or JSON with parameters. Types that are no JSON are answered as such.
func AcceptsOtherJSON(accept []byte) bool {
	for one := range bytes.SplitSeq(accept, []byte(",")) {
		media, parameters, _ := bytes.Cut(one, []byte(";"))
		media = bytes.ToLower(bytes.TrimSpace(media))
		switch {
		case bytes.HasSuffix(media, []byte("+json")), bytes.Contains(media, []byte("/vnd.")):
			return true
		case string(media) != JSON:
			continue
		}
		for parameter := range bytes.SplitSeq(parameters, []byte(";")) {
			name, _, _ := bytes.Cut(bytes.TrimSpace(parameter), []byte("="))
			if len(name) > 0 && !bytes.EqualFold(name, []byte("q")) && !bytes.EqualFold(name, []byte("charset")) {
				return true
			}
		}
	}
	return false
}
