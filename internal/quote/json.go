package quote

import "unicode/utf8"

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
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if e.asIs[c] { // nearly all are
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(append(dst, s[from:i]...), e.ascii[c]...)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		escape := ""
		switch {
		case r == utf8.RuneError && size == 1:
			escape = e.invalid
		case r == '\u2028' && e.lines:
			escape = `\u2028`
		case r == '\u2029' && e.lines:
			escape = `\u2029`
		}
		if escape != "" {
			dst = append(append(dst, s[from:i]...), escape...)
			from = i + size
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}
