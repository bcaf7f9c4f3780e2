package resource

import (
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/octets"
)

// isUndescribed reports whether a path parts from all paths that files have at one of its segments, and has no segment
// that leads back, whatever server reads it. This is the quick answer for most paths that no file describes. False
// leaves it open.
func (s *spellings) isUndescribed(raw string) bool {
	if !strings.HasPrefix(raw, "/") {
		return false
	}
	hasDot := false
	for n, start := &s.root, 1; ; {
		if n.isEnd || n.variable != nil || n.dotted != nil {
			return false
		}
		end, dotted := cutOrdinary(raw, start)
		if end == start || end < len(raw) && raw[end] != '/' {
			return false
		}
		// What stands before a dot may be a program, or all that counts of the last segment.
		if dotted && (start == 1 || end == len(raw)) {
			return false
		}
		hasDot = hasDot || dotted
		next := n.to(raw[start:end])
		switch {
		case next == nil && hasDot:
			return isOrdinary(raw)
		case next == nil:
			return goesOn(raw[end:])
		case end == len(raw):
			return false
		}
		n, start = next, end+1
	}
}

// goesOn reports whether no server could go back from the rest of a path to the segments before it: it has no '..', and
// no character of which some server could make one.
func goesOn(rest string) bool {
	i := 0
	for i+8 <= len(rest) {
		x := octets.WordOf(rest[i:])
		n := octets.First(x | octets.FirstEqual(x, '%') | octets.FirstEqual(x, '\\') | octets.FirstEqual(x, '.'))
		if n < 8 && !goesOnAt(rest, i+n) {
			return false
		}
		i += min(n+1, 8)
	}
	for ; i < len(rest); i++ {
		if !goesOnAt(rest, i) {
			return false
		}
	}
	return true
}

// goesOnAt is goesOn for one character.
func goesOnAt(rest string, i int) bool {
	switch c := rest[i]; c {
	case '%', '\\':
		return false
	case '.':
		return i+1 == len(rest) || rest[i+1] != '.'
	default:
		return c < utf8.RuneSelf
	}
}

// cutOrdinary returns where the segment ends that starts there, at the latest before what servers read in different
// ways.
func cutOrdinary(raw string, start int) (end int, hasDot bool) {
	for end = start; ; end++ {
		for end < len(raw) && undotted[raw[end]] {
			end++
		}
		if end == start || end+1 >= len(raw) || raw[end] != '.' || !undotted[raw[end+1]] {
			return end, hasDot
		}
		hasDot = true
	}
}

// to returns the node behind a plain segment, whatever its case; nil if there is none. The segment has no character
// outside ASCII.
func (n *spelling) to(segment string) *spelling {
	for i := range n.plain {
		if e := &n.plain[i]; len(e.segment) == len(segment) && strings.EqualFold(e.segment, segment) {
			return e.to
		}
	}
	return nil
}

// undotted are the characters that every server reads in the same way wherever they stand in a path, but for case.
var undotted = func() [256]bool {
	set := charsOf("")
	set['.'] = false
	return set
}()
