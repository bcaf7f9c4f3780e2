package quote

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
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
	for {
		dst, s = appendPlain(dst, s)
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

// appendPlain appends words of eight bytes for as long as they have plain characters alone, and returns what follows them.
// Of a text that is not shorter than a word the last eight bytes are a word too. Nearly all texts end here.
func appendPlain(dst []byte, s string) (to []byte, rest string) {
	n := len(dst)
	dst = slices.Grow(dst, len(s)+1)
	room, i := dst[n:n+len(s)], 0
	for ; i+8 <= len(s); i += 8 {
		word := wordAt(s, i)
		if !isPlain(word) {
			return dst[:n+i], s[i:]
		}
		binary.LittleEndian.PutUint64(room[i:], word)
	}
	if last := len(s) - 8; i < len(s) && last >= 0 {
		if word := wordAt(s, last); isPlain(word) {
			binary.LittleEndian.PutUint64(room[last:], word)
			i = len(s)
		}
	}
	return dst[:n+i], s[i:]
}

func wordAt(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// isPlain reports whether all eight bytes of a word are characters that stand for themselves however strings are escaped:
// those of ASCII from the space on but for quotation marks, backslashes, '<', '>' and '&'.
//
// The highest bit of each byte is the answer for that byte. No sum carries into the next byte unless a byte is not of
// ASCII, which its own highest bit says.
func isPlain(word uint64) bool {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
		most = 0x7f * each
	)
	notBelowSpace := word + 0x60*each
	notAngle := (word | 0x02*each) ^ '>'*each + most // '<' is '>' without the bit 2
	notMark := (word | 0x04*each) ^ '&'*each + most  // '"' is '&' without the bit 4
	notBackslash := word ^ '\\'*each + most
	return ^word&notBelowSpace&notAngle&notMark&notBackslash&high == high
}
