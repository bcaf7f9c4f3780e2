package plain

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A resourceVersion made of an ETag is the ETag's own text if that consists of letters, digits, '.'
// and '-'. Any other character is '_' and two hexadecimal digits, and what is no plain ETag begins
// with '_' and one of these letters. A number stays a number, so that clients can see which of two
// versions is newer, but a greater one: 0 means no version to Kubernetes, and clients and tests
// send 1 for a version that is surely past.
const (
	strongMark = "_S" // needed if the text alone would be nothing, or a number that stands for another one
	bareMark   = "_B" // an ETag without quotes, which some APIs send

	numberOffset = 1000
	numberDigits = 17 // of the longest ETag that is read as a number
)

// strong returns an ETag by which a write can be pinned: none for a weak one, which If-Match never matches (RFC 9110,
// 13.1.1). Two versions may have the same weak ETag.
func strong(etag []byte) []byte {
	if bytes.HasPrefix(etag, []byte("W/")) {
		return nil
	}
	return etag
}

// appendVersion appends the resourceVersion made from an ETag. No ETag has none, and neither has a
// weak one.
func appendVersion(dst, etag []byte) []byte {
	tag := strong(etag)
	switch {
	case len(tag) == 0:
		return dst
	case !isQuoted(tag):
		dst = append(dst, bareMark...)
	default:
		tag = tag[1 : len(tag)-1]
		if n, ok := numberIn(str(tag)); ok && len(tag) <= numberDigits {
			return strconv.AppendUint(dst, n+numberOffset, 10)
		} else if ok || len(tag) == 0 || len(tag) > numberDigits && allDigits(str(tag)) {
			dst = append(dst, strongMark...)
		}
	}
	for _, c := range tag {
		if isVersionChar(c) {
			dst = append(dst, c)
		} else {
			dst = hex.AppendEncode(append(dst, '_'), []byte{c})
		}
	}
	return dst
}

// appendETag appends the ETag that a resourceVersion was made of; false for one that no ETag has.
func appendETag(dst []byte, version string) ([]byte, bool) {
	before, after := `"`, `"`
	rest := version
	if n, ok := numberIn(version); ok {
		if n < numberOffset || n >= 1e17+numberOffset {
			return dst, false
		}
		return append(strconv.AppendUint(append(dst, '"'), n-numberOffset, 10), '"'), true
	}
	if len(version) >= 2 {
		switch version[:2] {
		case strongMark:
			rest = version[2:]
		case bareMark:
			before, after, rest = "", "", version[2:]
		}
	}
	start := len(dst)
	dst = append(dst, before...)
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case isVersionChar(c):
			dst = append(dst, c)
		case c == '_' && i+3 <= len(rest):
			var one [1]byte
			if _, err := hex.Decode(one[:], []byte(rest[i+1:i+3])); err != nil {
				return dst[:start], false
			}
			dst = append(dst, one[0])
			i += 2
		default:
			return dst[:start], false
		}
	}
	dst = append(dst, after...)
	// Only the one spelling counts: two resourceVersions never stand for one ETag.
	var again [64]byte
	return dst, string(appendVersion(again[:0], dst[start:])) == version
}

// numberIn reads a decimal number without leading zeros that fits 64 bits well.
func numberIn(s string) (uint64, bool) {
	if !allDigits(s) || len(s) > numberDigits+1 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isQuoted(tag []byte) bool { return len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' }

func isVersionChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-'
}

// versionIn is the version that a field holds: a string or a number; "" means no version.
func versionIn(at document.Node) string {
	switch at.Kind() {
	case document.String:
		return at.Str()
	case document.Number:
		return string(at.Raw())
	}
	return ""
}

// versionOf makes the version of an object as the backend gave it: of its field, of the ETag of the
// answer, or, if the backend gives no versions, of its content. None is empty. In lists, too,
// objects have a field and content.
func versionOf(dst []byte, r *resource.Resource, object document.Node, etag []byte) []byte {
	switch {
	case r.Fields.Version != nil:
		at, _ := storage.Find(object, r.Fields.Version)
		if version := versionIn(at); version != "" {
			return appendVersion(dst, []byte(`"`+version+`"`))
		}
		return dst
	case r.Backend.Versions == resource.ETagVersions && len(strong(etag)) > 0:
		return appendVersion(dst, etag)
	case isDigested(r):
		return appendDigest(dst, object)
	}
	return dst
}

// isDigested reports whether the version of an object may be made of its content.
func isDigested(r *resource.Resource) bool {
	return r.Fields.Version == nil && r.Backend.Concurrency == resource.BestEffort &&
		(r.Backend.Versions == resource.ETagVersions || r.Backend.Versions == resource.NoVersions)
}

// appendDigest appends a digest of a value, which does not depend on white space and the order of members.
func appendDigest(dst []byte, value document.Node) []byte {
	sum := sha256.Sum256(appendCanonical(nil, value))
	return hex.AppendEncode(dst, sum[:16])
}

func appendCanonical(dst []byte, value document.Node) []byte {
	switch value.Kind() {
	case document.Object:
		members := make([]document.Node, 0, value.Len())
		for m := value.First(); m.Valid(); m = m.Next() {
			members = append(members, m)
		}
		slices.SortFunc(members, func(a, b document.Node) int { return cmp.Compare(a.Key(), b.Key()) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(document.AppendString(dst, m.Key()), ':')
			dst = append(appendCanonical(dst, m), ',')
		}
		return append(dst, '}')
	case document.Array:
		dst = append(dst, '[')
		for item := value.First(); item.Valid(); item = item.Next() {
			dst = append(appendCanonical(dst, item), ',')
		}
		return append(dst, ']')
	case document.String:
		return document.AppendString(dst, value.Str())
	}
	return append(dst, value.Raw()...)
}

// setVersion gives an object its resourceVersion.
func setVersion(d *document.Document, object document.Node, version []byte) {
	metadata, _ := object.Get("metadata")
	if metadata.Kind() != document.Object {
		metadata = d.Set(object, "metadata", []byte("{}"))
	}
	d.SetString(metadata, "resourceVersion", str(version))
}

// str is the string of bytes that live as long as the request.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
