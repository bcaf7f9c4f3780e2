package plain

import (
	"bytes"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// validators identify a state of an object.
type validators struct {
	made []byte // the ETag that the gateway made; nil if it made none
	own  []byte // the backend's ETag, strong or weak
	// modified is the backend's Last-Modified.
	modified []byte
	// isAbsent says that nothing is stored.
	isAbsent bool
}

// A conditionResult says whether the preconditions of a request hold.
type conditionResult uint8

const (
	holds      conditionResult = iota
	unmodified                 // the client of a read has the object as it is
	unmatched                  // If-Match does not hold
	matched                    // If-None-Match does not hold, for a write
	modified                   // If-Unmodified-Since does not hold
)

// compare evaluates the preconditions of a request in the order of RFC 9110, 13.2.2. Each header may come in several
// lines.
func compare(head *message.Head, v *validators, isRead bool) conditionResult {
	switch {
	case head.Has(message.FieldIfMatch):
		if !anyOf(head, message.FieldIfMatch, v.matches) {
			return unmatched
		}
	case head.Has(message.FieldIfUnmodifiedSince):
		if since, ok := dateIn(head.Value(message.FieldIfUnmodifiedSince)); ok {
			if changed, ok := dateIn(v.modified); ok && changed.After(since) {
				return modified
			}
		}
	}
	switch {
	case head.Has(message.FieldIfNoneMatch):
		switch {
		case !anyOf(head, message.FieldIfNoneMatch, v.matchesWeakly):
		case isRead:
			return unmodified
		default:
			return matched
		}
	case isRead && head.Has(message.FieldIfModifiedSince):
		if since, ok := dateIn(head.Value(message.FieldIfModifiedSince)); ok {
			if changed, ok := dateIn(v.modified); ok && !changed.After(since) {
				return unmodified
			}
		}
	}
	return holds
}

// matches reports whether a list of ETags, or '*', names the state, by the strong comparison of If-Match.
func (v *validators) matches(list []byte) bool {
	if v.isAbsent {
		return false
	}
	return isAny(list) || eachETag(list, func(one []byte) bool {
		return len(one) > 0 && (bytes.Equal(one, v.made) || bytes.Equal(one, strong(v.own)))
	})
}

// matchesWeakly does so by the weak comparison of If-None-Match, for which W/ does not count.
func (v *validators) matchesWeakly(list []byte) bool {
	if v.isAbsent {
		return false
	}
	return isAny(list) || eachETag(list, func(one []byte) bool {
		one = opaque(one)
		return len(one) > 0 && (bytes.Equal(one, v.made) || bytes.Equal(one, opaque(v.own)))
	})
}

// anyOf reports whether a line of the header is one that is asked for.
func anyOf(head *message.Head, f message.Field, is func(list []byte) bool) bool {
	for _, l := range head.Headers() {
		if l.Field == f && !l.Dropped && is(l.Value) {
			return true
		}
	}
	return false
}

// refusedBy returns the 412 of a write, or a read, whose preconditions do not hold.
func refusedBy(s *storage.Subject, head *message.Head, v *validators, o conditionResult) error {
	why := ""
	switch {
	case o == modified:
		why = "the object must not have been modified since the time in the header 'If-Unmodified-Since'"
	case o == matched && anyOf(head, message.FieldIfNoneMatch, isAny):
		why = "the object must not exist where the header 'If-None-Match' is '*'"
	case o == matched:
		why = "the object must not have an ETag that the header 'If-None-Match' names"
	case v.isAbsent:
		why = "the object must exist where the header 'If-Match' is sent"
	case neverMatches(head):
		why = "the header 'If-Match' names a weak ETag, which never matches: name a strong one or leave the header out"
	case v.made == nil && strong(v.own) == nil:
		why = "the header 'If-Match' must be '*' or be left out, for the object has no strong ETag"
	default:
		why = "the header 'If-Match' must name the ETag of the object as it is stored: read the object and apply your changes to it"
	}
	return status.PreconditionFailed(s.Info.GroupResource(), s.Info.Name, why)
}

// hasPreconditions reports whether a write names the state of the object that it expects.
func hasPreconditions(head *message.Head) bool {
	return head.Has(message.FieldIfMatch) || head.Has(message.FieldIfNoneMatch) ||
		head.Has(message.FieldIfUnmodifiedSince)
}

// readsConditionally reports whether a read does.
func readsConditionally(head *message.Head) bool {
	return hasPreconditions(head) || head.Has(message.FieldIfModifiedSince)
}

// neverMatches reports whether the client's If-Match names weak ETags alone.
func neverMatches(head *message.Head) bool {
	weak := false
	for _, l := range head.Headers() {
		if l.Field != message.FieldIfMatch || l.Dropped {
			continue
		}
		if len(l.Value) == 0 || isAny(l.Value) ||
			eachETag(l.Value, func(one []byte) bool { return len(strong(one)) > 0 }) {
			return false
		}
		weak = true
	}
	return weak
}

func isAny(list []byte) bool { return string(bytes.TrimSpace(list)) == "*" }

func opaque(etag []byte) []byte { return bytes.TrimPrefix(etag, []byte("W/")) }

// dateIn reads an HTTP date.
func dateIn(text []byte) (t time.Time, ok bool) {
	if len(text) == 0 {
		return t, false
	}
	t, err := http.ParseTime(string(text))
	return t, err == nil
}

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
