package plain

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// isPermitted reports whether the client's own preconditions let a write change an object of this version:
// the pin that the gateway sends takes their place. Each may come in several lines.
func isPermitted(head *message.Head, etag []byte) bool {
	asked, matched := false, false
	for _, l := range head.Headers() {
		switch {
		case l.Dropped:
		case l.Field == message.FieldIfMatch:
			asked, matched = true, matched || matches(l.Value, etag)
		case l.Field == message.FieldIfNoneMatch && matchesWeakly(l.Value, etag):
			return false
		}
	}
	return matched || !asked
}

// unmatched returns the error of a write whose own preconditions do not hold. Otherwise a client
// that names a weak ETag would be asked for ever to try again with a newer one.
func unmatched(w *storage.Write) error {
	if neverMatches(w.Exchanges.Head) {
		return status.Conflict(w.Info.GroupResource(), w.Info.Name, "the header 'If-Match' names a weak ETag, which never matches: name a strong one or leave the header out")
	}
	return w.Conflict()
}

// neverMatches reports whether the client's If-Match names weak ETags alone.
func neverMatches(head *message.Head) bool {
	weak := false
	for _, l := range head.Headers() {
		if l.Field != message.FieldIfMatch || l.Dropped {
			continue
		}
		if len(l.Value) == 0 || isAny(l.Value) || eachETag(l.Value, func(one []byte) bool { return len(strong(one)) > 0 }) {
			return false
		}
		weak = true
	}
	return weak
}

// matches reports whether a list of ETags, or '*', names the version that is stored, by the strong comparison of If-Match
// (RFC 9110, 8.8.3.2): a weak ETag matches nothing, not even itself.
func matches(list, etag []byte) bool {
	if isAny(list) || len(list)+len(etag) == 0 {
		return true
	}
	return len(strong(etag)) > 0 && eachETag(list, func(one []byte) bool { return bytes.Equal(one, etag) })
}

// matchesWeakly does so by the weak comparison of If-None-Match, for which W/ does not count.
func matchesWeakly(list, etag []byte) bool {
	if isAny(list) {
		return true
	}
	want := opaque(etag)
	return len(want) > 0 && eachETag(list, func(one []byte) bool { return bytes.Equal(opaque(one), want) })
}

func isAny(list []byte) bool { return string(bytes.TrimSpace(list)) == "*" }

func opaque(etag []byte) []byte { return bytes.TrimPrefix(etag, []byte("W/")) }

// eachETag calls is with each ETag of a list until one is it.
func eachETag(list []byte, is func(etag []byte) bool) bool {
	for {
		list = bytes.TrimLeft(list, ", \t")
		if len(list) == 0 {
			return false
		}
		end := bytes.IndexByte(list, ',')
		if start := len(list) - len(opaque(list)); len(list) > start && list[start] == '"' {
			// A comma within quotes is part of the version.
			if quote := bytes.IndexByte(list[start+1:], '"'); quote >= 0 {
				end = start + quote + 2
			}
		}
		if end < 0 {
			end = len(list)
		}
		if is(bytes.TrimSpace(list[:end])) {
			return true
		}
		list = list[end:]
	}
}
