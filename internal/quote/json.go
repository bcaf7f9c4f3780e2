package quote

import (
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/octets"
)

// escaping says how strings are written as JSON.
type escaping struct {
	ascii   [utf8.RuneSelf]string // what stands for a character; "" for itself
	asIs    [256]bool             // the bytes that are characters which stand for themselves
	invalid string                // replaces a byte that is not UTF-8
	lines   bool                  // U+2028 and U+2029, which end lines in JavaScript, are escaped
}

var (
	minimal = newEscaping("\uFFFD", false, map[byte]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`})
	html    = newEscaping(`\ufffd`, true, map[byte]string{
		'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
		'<': `\u003c`, '>': `\u003e`, '&': `\u0026`,
	})
)

func newEscaping(invalid string, lines bool, special map[byte]string) *escaping {
	const hex = "0123456789abcdef"
	e := &escaping{invalid: invalid, lines: lines}
	for c := range byte(' ') {
		e.ascii[c] = `\u00` + string([]byte{hex[c>>4], hex[c&15]})
	}
	for c, escape := range special {
		e.ascii[c] = escape
	}
	for c, escape := range e.ascii {
		e.asIs[c] = escape == ""
	}
	return e
}

// AppendJSON appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD,
// and nothing is escaped that need not be.
func AppendJSON(dst []byte, s string) []byte { return minimal.append(dst, s) }

// AppendHTML appends s as a JSON string, escaped as encoding/json escapes it: HTML
// characters and the line separators U+2028 and U+2029 too.
func AppendHTML(dst []byte, s string) []byte { return html.append(dst, s) }

func (e *escaping) append(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if isAllPlain(s) { // as nearly all are
		return append(append(dst, s...), '"')
	}
	for {
		i := 0
		for i < len(s) && e.asIs[s[i]] {
			i++
		}
		dst = append(dst, s[:i]...)
		if i == len(s) {
			return append(dst, '"')
		}
		dst, s = e.appendOther(dst, s[i:])
	}
}

// appendOther appends the first character of s, which is escaped or not of ASCII, and returns what follows it.
func (e *escaping) appendOther(dst []byte, s string) (to []byte, rest string) {
	if c := s[0]; c < utf8.RuneSelf {
		return append(dst, e.ascii[c]...), s[1:]
	}
	r, size := utf8.DecodeRuneInString(s)
	text := s[:size]
	switch {
	case r == utf8.RuneError && size == 1:
		text = e.invalid
	case r == '\u2028' && e.lines:
		text = `\u2028`
	case r == '\u2029' && e.lines:
		text = `\u2029`
	}
	return append(dst, text...), s[size:]
}

// isAllPlain reports whether s has words of eight bytes with plain characters alone. Of a text that is longer than a
// word the last eight bytes are a word too; what is shorter is left to others.
func isAllPlain(s string) bool {
	if len(s) < 8 {
		return false
	}
	last := len(s) - 8
	for i := 0; i < last; i += 8 {
		if !isPlain(octets.WordOf(s[i:])) {
			return false
		}
	}
	return isPlain(octets.WordOf(s[last:]))
}

// isPlain reports whether all eight bytes of a word are characters that stand for themselves however strings are
// escaped. It says no of some others too, so that few steps are enough: of all that differ from '<' in the bits 2, 20
// and 40 alone, which are '>', '\\', '^', '|' and '~', and of '"' and '&'.
//
// The highest bit of each byte is the answer for that byte. No sum carries into the next byte unless a byte is not of
// ASCII, which its own highest bit says.
func isPlain(word uint64) bool {
	const (
		each = octets.Ones
		high = octets.Highs
		most = 0x7f * each
	)
	notControl := word + 0x60*each
	notAngle := (word | 0x62*each) ^ '~'*each + most
	notMark := (word | 0x04*each) ^ '&'*each + most
	return ^word&notControl&notAngle&notMark&high == high
}
