package compress

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/http1"
)

// A strong ETag names bytes, and encoded ones are others (RFC 9110, 8.8.3.3). So the ETag of an encoded answer is the
// backend's with a mark inside its quotes. Where a client names it again the mark is taken off: the backend knows its own
// ETags only.
const markStart = "-gateway-"

// Mark returns a strong ETag of the backend as the one of an encoded answer. Weak ones hold for every coding.
func Mark(etag []byte, c Coding) []byte {
	n := len(etag)
	if c == Identity || n < 2 || etag[0] != '"' || etag[n-1] != '"' {
		return etag
	}
	return append(append(append(append([]byte(nil), etag[:n-1]...), markStart...), c.String()...), '"')
}

// Unmark takes the marks off the ETags in a client's If-Match and If-None-Match, in place. It returns the coding that
// the last mark in If-None-Match names.
func Unmark(head *http1.Head) Coding {
	if !head.Has(http1.FieldIfMatch) && !head.Has(http1.FieldIfNoneMatch) {
		return Identity
	}
	found := Identity
	headers := head.Headers()
	for i := range headers {
		l := &headers[i]
		if l.Field != http1.FieldIfMatch && l.Field != http1.FieldIfNoneMatch {
			continue
		}
		for _, c := range ForBodies {
			n := len(l.Value)
			l.Value = without(l.Value, markStart+c.String()+`"`)
			if len(l.Value) < n && l.Field == http1.FieldIfNoneMatch {
				found = c
			}
		}
	}
	return found
}

// without takes all marks out of the value of a header line. Blanks fill its place in the head up, so that the head can be
// parsed once more.
func without(value []byte, mark string) []byte {
	left := value
	for {
		at := bytes.Index(left, []byte(mark))
		if at < 0 {
			break
		}
		left = append(left[:at], left[at+len(mark)-1:]...)
	}
	for i := len(left); i < len(value); i++ {
		value[i] = ' '
	}
	return left
}
