package message

import (
	"bytes"
	"encoding/binary"
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

// cutLine returns the bytes before the next CR LF and those after it. The
// caller has seen with HeadEnd that each LF follows a CR.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return nil, nil
	}
	return b[:i-1], b[i+1:]
}

// scanHeader reads one header line: a token, a colon at once after it, a value
// without control characters, spaces and tabs around it cut off.
func scanHeader(line []byte, h *Header) (underscore bool, problem string) {
	if line[0] == ' ' || line[0] == '\t' {
		return false, "has a header line that is folded over several lines"
	}
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return false, "has a header line without a colon"
	}
	if colon == 0 {
		return false, "has a header line without a name"
	}
	for _, c := range line[:colon] {
		if !token[c] {
			return false, "has a header name with a character that may not be in one"
		}
		underscore = underscore || c == '_'
	}
	value := trim(line[colon+1:])
	if !validValue(value) {
		return false, "has a header value with a control character"
	}
	h.Name, h.Value = line[:colon], value
	h.Field = FieldOf(h.Name)
	h.Dropped = false
	return underscore, ""
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
func validValue(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		// The high bit of a byte of low is set if the byte is below 0x20 (or above 0x7f, which the
		// mask takes out), of del if it is 0x7f.
		low := (x - 0x20*ones) &^ x
		y := x ^ 0x7f*ones
		del := (y - ones) &^ y
		if (low|del)&highs != 0 && !validBytes(b[:8]) {
			return false
		}
		b = b[8:]
	}
	return validBytes(b)
}

func validBytes(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
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
		for _, c := range element {
			if !token[c] {
				return false
			}
		}
		if len(element) > 0 {
			f(element)
		}
	}
	return true
}

// token says which bytes may be in a token (RFC 9110, 5.6.2).
var token = [256]bool{
	'!': true, '#': true, '$': true, '%': true, '&': true, '\'': true, '*': true, '+': true, '-': true, '.': true,
	'^': true, '_': true, '`': true, '|': true, '~': true,
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true, 'G': true, 'H': true, 'I': true, 'J': true, 'K': true, 'L': true, 'M': true,
	'N': true, 'O': true, 'P': true, 'Q': true, 'R': true, 'S': true, 'T': true, 'U': true, 'V': true, 'W': true, 'X': true, 'Y': true, 'Z': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true, 'h': true, 'i': true, 'j': true, 'k': true, 'l': true, 'm': true,
	'n': true, 'o': true, 'p': true, 'q': true, 'r': true, 's': true, 't': true, 'u': true, 'v': true, 'w': true, 'x': true, 'y': true, 'z': true,
}

// IsInToken reports whether a token may have that byte.
func IsInToken(c byte) bool { return token[c] }

// isToken reports whether b is a token (RFC 9110, 5.6.2).
func isToken(b []byte) bool {
	for _, c := range b {
		if !token[c] {
			return false
		}
	}
	return len(b) > 0
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
