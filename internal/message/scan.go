package message

import (
	"bytes"
	"strings"

	"github.com/admission-gateway/gateway/internal/octets"
)

// Header is one header line. Name and Value alias the bytes of the head.
type Header struct {
	Name, Value []byte
	Field       Field
	// Dropped lines are not passed on and no reader of the head sees them: hop-by-hop lines,
	// identity headers of peers that are not trusted, and names with '_' if the settings say so.
	Dropped bool
}

// HeadEnd looks for the empty line that ends a head. It returns the length of the head with that
// line, or 0 if more bytes are needed; next is then the offset to go on from. A line that does not
// end in CR LF is refused at once, so that a head made of bare LFs is not waited for.
func HeadEnd(b []byte, from int) (length, next int, err *Flaw) {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, from, nil
		}
		i += from
		if i == 0 || b[i-1] != '\r' {
			return 0, from, &Flaw{Message: "the head of the message has a line that ends in a bare LF", Code: 400}
		}
		if i-1 == from {
			return i + 1, i + 1, nil
		}
		from = i + 1
	}
}

// cutLine returns the bytes before the next CR LF and those after it; nil if there is none, or a LF
// without a CR comes first.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, nil
	}
	return b[:i-1], b[i+1:]
}

// scanHeader reads the header line at the beginning of b: a token, a colon at once after it, a value
// without control characters, spaces and tabs around it cut off. It returns the length of the line,
// CR LF included, and whether the name has a '_'.
func scanHeader(b []byte, h *Header) (size int, underscore bool, problem string) {
	i, seen := 0, uint8(0)
	for ; i < len(b); i++ {
		class := classes[b[i]]
		if class&inToken == 0 {
			break
		}
		seen |= class
	}
	if i == 0 || i == len(b) || b[i] != ':' {
		return 0, false, problemOf(b)
	}
	name, from := b[:i], i+1
	for from < len(b) && (b[from] == ' ' || b[from] == '\t') {
		from++
	}
	end := from + beforeControl(b[from:])
	if end+1 >= len(b) || b[end] != '\r' || b[end+1] != '\n' {
		return 0, false, "has a header value with a control character"
	}
	to := end
	for to > from && (b[to-1] == ' ' || b[to-1] == '\t') {
		to--
	}
	h.Name, h.Value = name, b[from:to]
	h.Field = FieldOf(name)
	h.Dropped = false
	return end + len("\r\n"), seen&isUnderscore != 0, ""
}

// problemOf says why a line does not begin with a token and a colon.
func problemOf(b []byte) string {
	line, _ := cutLine(b)
	switch {
	case len(line) == 0:
		return "has a header line that does not end"
	case line[0] == ' ' || line[0] == '\t':
		return "has a header line that is folded over several lines"
	case line[0] == ':':
		return "has a header line without a name"
	case bytes.IndexByte(line, ':') < 0:
		return "has a header line without a colon"
	}
	return "has a header name with a character that may not be in one"
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// validValue reports whether b has no control character other than tabs.
func validValue(b []byte) bool { return beforeControl(b) == len(b) }

// beforeControl returns how many bytes at the beginning of b are no control characters other than
// tabs.
func beforeControl(b []byte) int {
	i := 0
	for i+8 <= len(b) {
		x := octets.Word(b[i:])
		n := octets.First(octets.FirstBelow(x, ' ') | octets.FirstEqual(x, 0x7f))
		if i += n; n == 8 {
			continue
		}
		if b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && (b[i] >= ' ' && b[i] != 0x7f || b[i] == '\t') {
		i++
	}
	return i
}

// eachToken calls f for each element of a comma-separated list of tokens. It returns false if the
// list has an element that is no token.
func eachToken(list []byte, f func(element []byte)) bool {
	for len(list) > 0 {
		var element []byte
		if i := bytes.IndexByte(list, ','); i >= 0 {
			element, list = trim(list[:i]), list[i+1:]
		} else {
			element, list = trim(list), nil
		}
		if !hasTokenBytes(element) {
			return false
		}
		if len(element) > 0 {
			f(element)
		}
	}
	return true
}

// The classes of bytes, as bits of classes.
const (
	inToken      = 1 << iota // may be in a token (RFC 9110, 5.6.2)
	inHost                   // may be in the name of a host, or in an IPv4 address
	isUnderscore             // is '_'
)

var classes = func() (of [256]uint8) {
	for c := range of {
		letter, digit := c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9'
		if letter || digit || strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0 {
			of[c] |= inToken
		}
		if letter || digit || c == '-' || c == '.' || c == '_' {
			of[c] |= inHost
		}
	}
	of['_'] |= isUnderscore
	return of
}()

// IsInToken reports whether a token may have that byte.
func IsInToken(c byte) bool { return classes[c]&inToken != 0 }

// isToken reports whether b is a token (RFC 9110, 5.6.2).
func isToken(b []byte) bool { return len(b) > 0 && hasTokenBytes(b) }

// hasTokenBytes reports whether a token may have each byte of b.
func hasTokenBytes(b []byte) bool {
	for _, c := range b {
		if !IsInToken(c) {
			return false
		}
	}
	return true
}

// length reads the value of a Content-Length: digits alone, no sign, no
// leading zero (which some readers take for octal), no list, at most an int64.
func length(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= 1<<63-1
}

// HexDigit returns the value of a hexadecimal digit; -1 if c is not one.
func HexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20-'a' <= 5:
		return int(c|0x20-'a') + 10
	}
	return -1
}
