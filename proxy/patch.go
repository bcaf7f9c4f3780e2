package proxy

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// patchType is the language that a patch is written in.
type patchType uint8

const (
	noPatch patchType = iota
	jsonPatch
	mergePatch
	strategicMergePatch
)

// patchTypeOf reads a Content-Type; noPatch is one that the gateway does not read.
func patchTypeOf(contentType []byte) patchType {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.TrimSpace(media)
	switch {
	case bytes.EqualFold(media, []byte("application/json-patch+json")):
		return jsonPatch
	case bytes.EqualFold(media, []byte("application/merge-patch+json")):
		return mergePatch
	case bytes.EqualFold(media, []byte("application/strategic-merge-patch+json")):
		return strategicMergePatch
	}
	return noPatch
}

// applyPatch refuses a patch of an object that has to be judged: what a policy sees must be what is stored, and this
// version cannot tell what the backend would make of the patch (RW-3).
func (x *exchange) applyPatch() error {
	if x.info.Verb != resource.VerbPatch {
		return nil
	}
	return status.MethodNotAllowedf("PATCH is not supported on resources that policies are about: send the whole object with PUT")
}
