package proxy

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/wire"
)

// permits tells whether the client's own preconditions let a write change an object of this version: the pin that the
// gateway sends takes their place. Each may come in several lines.
func (x *exchange) permits(etag []byte) bool {
	asked, matched := false, false
	for _, l := range x.conn.head.Headers() {
		switch {
		case l.Dropped:
		case l.Field == wire.FieldIfMatch:
			asked, matched = true, matched || names(l.Value, etag)
		case l.Field == wire.FieldIfNoneMatch && names(l.Value, etag):
			return false
		}
	}
	return matched || !asked
}

// names tells whether a list of versions, or '*', names the version that is stored. Weak versions count: what they stand
// for is the backend's to know.
func names(list, etag []byte) bool {
	list = bytes.TrimSpace(list)
	if string(list) == "*" || bytes.Equal(list, etag) {
		return true
	}
	want := bytes.TrimPrefix(etag, []byte("W/"))
	if len(want) == 0 {
		return false
	}
	for len(list) > 0 {
		list = bytes.TrimPrefix(bytes.TrimLeft(list, ", \t"), []byte("W/"))
		end := bytes.IndexByte(list, ',')
		if len(list) > 0 && list[0] == '"' {
			// A comma within quotes is part of the version.
			if quote := bytes.IndexByte(list[1:], '"'); quote >= 0 {
				end = quote + 2
			}
		}
		if end < 0 {
			end = len(list)
		}
		if bytes.Equal(bytes.TrimSpace(list[:end]), want) {
			return true
		}
		list = list[end:]
	}
	return false
}
