package compress

import (
	"bytes"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
)

// A strong ETag names bytes. Encoded ones are others (RFC 9110, 8.8.3.3), and so are edited ones,
// which depend on the policy files too. So the ETag of such an answer is the backend's with a mark
// inside its quotes. If a client names it again the mark is taken off: the backend knows its own
// ETags only.
const markStart = "-gateway-"

// A Variant says how an answer differs from the backend's.
type Variant struct {
	// Revision names what edited the answer, in RevisionLength lower-case hexadecimal digits; empty if nothing did.
	Revision string
	Coding   Coding
}

// RevisionLength is the length of a revision.
const RevisionLength = 8

// isSame reports whether the answer is the backend's own.
func (v Variant) isSame() bool { return v.Revision == "" && v.Coding == Identity }

// Mark returns a strong ETag of the backend as the one of another variant. Weak ones hold for every variant.
func Mark(etag []byte, v Variant) []byte {
	n := len(etag)
	if v.isSame() || n < 2 || etag[0] != '"' || etag[n-1] != '"' {
		return etag
	}
	marked := append(append(append([]byte(nil), etag[:n-1]...), markStart...), v.Revision...)
	if v.Coding != Identity {
		if v.Revision != "" {
			marked = append(marked, '-')
		}
		marked = append(marked, v.Coding.String()...)
	}
	return append(marked, '"')
}

// Unmark takes the marks off the ETags in a client's If-Match and If-None-Match, in place. It returns the variant that
// the last mark in If-None-Match names. What another revision edited is not what a client would get now: such a mark
// stays in If-None-Match, where the ETag matches nothing then.
func Unmark(head *message.Head, revision string) Variant {
	if !head.Has(message.FieldIfMatch) && !head.Has(message.FieldIfNoneMatch) {
		return Variant{}
	}
	found := Variant{}
	headers := head.Headers()
	for i := range headers {
		switch l := &headers[i]; l.Field {
		case message.FieldIfMatch:
			l.Value = without(l.Value, func(Variant) bool { return true })
		case message.FieldIfNoneMatch:
			l.Value = without(l.Value, func(v Variant) bool {
				isCurrent := v.Revision == "" || v.Revision == revision
				if isCurrent {
					found = v
				}
				return isCurrent
			})
		}
	}
	return found
}

// without takes the marks that are taken out of the value of a header line. Blanks fill its place in the head up, so
// that the head can be parsed once more.
func without(value []byte, takes func(Variant) bool) []byte {
	left := value
	for from := 0; ; {
		at := bytes.Index(left[from:], []byte(markStart))
		if at < 0 {
			break
		}
		at += from
		length := bytes.IndexByte(left[at:], '"')
		if length < 0 {
			break
		}
		if v, ok := variantOf(string(left[at+len(markStart) : at+length])); ok && takes(v) {
			left = append(left[:at], left[at+length:]...)
			from = at
		} else {
			from = at + 1
		}
	}
	for i := len(left); i < len(value); i++ {
		value[i] = ' '
	}
	return left
}

// variantOf reads what follows the start of a mark.
func variantOf(text string) (v Variant, ok bool) {
	if len(text) >= RevisionLength && strings.Trim(text[:RevisionLength], "0123456789abcdef") == "" {
		v.Revision, text = text[:RevisionLength], text[RevisionLength:]
		if text == "" {
			return v, true
		}
		if text, ok = strings.CutPrefix(text, "-"); !ok {
			return v, false
		}
	}
	for _, c := range ForBodies {
		if text == c.String() {
			v.Coding = c
			return v, true
		}
	}
	return v, false
}
