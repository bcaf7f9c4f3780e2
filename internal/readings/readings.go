// Package readings lists how servers may read the path of a request. Servers decode a path once, twice or in part, take
// '\' for '/', cut segments at ';', merge slashes, resolve dots, and drop blanks. A gateway that decides something by a
// path has to know all of these readings: the server behind it may have another one than the gateway.
//
// Letter case, file extensions and a slash at the end are no readings: paths that differ in them are different paths to
// those who write routes.
package readings

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/octets"
)

// IsPlain reports whether all servers read a path in the same way.
func IsPlain(path string) bool {
	i := 0
	for ; i+9 <= len(path); i += 8 {
		x, next := octets.WordOf(path[i:]), octets.WordOf(path[i+1:])
		found := x | octets.FirstEqual(x, '%') | octets.FirstEqual(x, '\\') | octets.FirstEqual(x, ';') |
			octets.FirstEqual(x, '#')
		// A '.' and a '/' differ in the lowest bit alone.
		found |= octets.FirstEqual(x|octets.Ones, '/') & octets.FirstEqual(next, '/')
		if found&octets.Highs != 0 && !isPlainFrom(path[:i+9], i) {
			return false
		}
	}
	return isPlainFrom(path, i) && (path == "" || path[len(path)-1] != '.')
}

// isPlainFrom is IsPlain for the bytes from an index on, each with the one behind it.
func isPlainFrom(path string, i int) bool {
	for ; i < len(path); i++ {
		switch c := path[i]; c {
		case '%', '\\', ';', '#':
			return false
		case '/', '.':
			if i+1 < len(path) && path[i+1] == '/' {
				return false
			}
		default:
			if c >= utf8.RuneSelf {
				return false
			}
		}
	}
	return true
}

const (
	// maxReadings is how many readings of a path are looked at, maxBytes how long they may be together. No client
	// means a path that has more.
	maxReadings, maxBytes = 96, 64 << 10
)

// Any reports whether some server could read a path as one for which f is true. It calls f with each reading, spelled
// as a client has to spell it, until f is true. The path itself, which begins with '/', is not among them. A path with
// more readings than can be looked at counts as one for which f is true.
func Any(path string, f func(reading string) bool) bool {
	if IsPlain(path) {
		return false
	}
	r := reader{all: make([]string, 1, 8), bytes: len(path)}
	r.all[0] = path
	for i := 0; i < len(r.all); i++ {
		text := r.all[i]
		if spelled := spell(text); spelled != path && f(spelled) {
			return true
		}
		if r.read(text); r.isFull {
			return true
		}
	}
	return false
}

// A reader collects the readings of a path: what any number of servers, one after the other, could make of it.
type reader struct {
	all    []string
	bytes  int
	isFull bool
}

// add keeps a reading.
func (r *reader) add(text string) {
	if text == "" || text[0] != '/' {
		text = "/" + text
	}
	if slices.Contains(r.all, text) {
		return
	}
	if r.bytes += len(text); len(r.all) == maxReadings || r.bytes > maxBytes {
		r.isFull = true
		return
	}
	r.all = append(r.all, text)
}

// read adds what one more step of a server makes of a text.
func (r *reader) read(text string) {
	if strings.IndexByte(text, '%') >= 0 {
		r.add(Decode(text, Everything))
		r.add(Decode(text, exceptSlashes))
		r.add(Decode(text, Unreserved))
		r.add(Decode(text, slashes))
	}
	if strings.IndexByte(text, '\\') >= 0 {
		r.add(strings.ReplaceAll(text, `\`, "/"))
	}
	if strings.IndexByte(text, ';') >= 0 {
		r.add(WithoutParameters(text))
	}
	r.normalize(text)
	for _, end := range ends {
		if before, _, found := strings.Cut(text, end); found {
			r.add(before)
		}
	}
	r.add(eachSegment(text, withoutBlanksBefore))
	r.add(eachSegment(text, withoutBlanksBehind))
	if !isASCII(text) {
		if utf8.ValidString(text) {
			r.add(norm.NFKC.String(text))
		} else {
			r.add(Overlong(text))
		}
	}
}

// normalize adds a text without empty segments and without dots. Some servers drop the slash at the end when they do
// so.
func (r *reader) normalize(text string) {
	hasEmpty := strings.Contains(text, "//")
	if hasEmpty {
		merged := merge(text)
		r.add(merged)
		r.add(strings.TrimSuffix(merged, "/"))
		if strings.HasPrefix(text, "//") { // which URLs have before their host
			_, path, _ := strings.Cut(strings.TrimLeft(text, "/"), "/")
			r.add("/" + path)
		}
	}
	for _, areEncoded := range [...]bool{false, true} {
		if resolved, hasDots := resolve(text, areEncoded); hasDots {
			r.add(resolved)
			r.add(strings.TrimSuffix(resolved, "/"))
		}
	}
}

// ends are what some servers take for the end of a path, also a ';' that others take for the beginning of parameters.
var ends = [...]string{"\x00", "?", "#", ";", "\r", "\n"}

// merge makes one slash of several.
func merge(text string) string {
	made := make([]byte, 0, len(text))
	for i := range len(text) {
		if text[i] != '/' || i == 0 || text[i-1] != '/' {
			made = append(made, text[i])
		}
	}
	return string(made)
}

// resolve takes out the segments '.' and '..' (RFC 3986, 5.2.4), also those with encoded dots if areEncoded is set. An
// empty segment is a segment.
func resolve(text string, areEncoded bool) (resolved string, hasDots bool) {
	if !strings.Contains(text, "/.") && (!areEncoded || !strings.Contains(text, "/%2")) {
		return text, false
	}
	var made []string
	isDot := false // of the last segment
	for segment := range strings.SplitSeq(text[1:], "/") {
		isDot = true
		switch dotsOf(segment, areEncoded) {
		case 1:
		case 2:
			made = made[:max(len(made)-1, 0)]
		default:
			made, isDot = append(made, segment), false
		}
		hasDots = hasDots || isDot
	}
	if isDot {
		made = append(made, "")
	}
	return "/" + strings.Join(made, "/"), hasDots
}

// dotsOf returns how many dots a segment is; 0 if it is something else.
func dotsOf(segment string, areEncoded bool) (n int) {
	for ; segment != ""; n++ {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case areEncoded && len(segment) >= 3 && segment[:2] == "%2" && segment[2]|0x20 == 'e':
			segment = segment[3:]
		default:
			return 0
		}
	}
	return n
}

// WithoutParameters cuts each segment at its first ';'.
func WithoutParameters(text string) string {
	if strings.IndexByte(text, ';') < 0 {
		return text
	}
	made := make([]byte, 0, len(text))
	isCut := false
	for i := range len(text) {
		switch text[i] {
		case '/':
			isCut = false
		case ';':
			isCut = true
		}
		if !isCut {
			made = append(made, text[i])
		}
	}
	return string(made)
}

// eachSegment changes the segments of a text.
func eachSegment(text string, change func(segment string) string) string {
	segments := strings.Split(text, "/")
	isChanged := false
	for i, s := range segments {
		segments[i] = change(s)
		isChanged = isChanged || len(segments[i]) != len(s)
	}
	if !isChanged {
		return text
	}
	return strings.Join(segments, "/")
}

// withoutBlanksBefore takes blanks and control characters off the beginning of a segment.
func withoutBlanksBefore(segment string) string { return strings.TrimLeftFunc(segment, isBlank) }

// withoutBlanksBehind takes them off its end, and dots unless there is nothing else, as Windows does with the names of
// files.
func withoutBlanksBehind(segment string) string {
	segment = strings.TrimRightFunc(segment, isBlank)
	if strings.HasSuffix(segment, ".") && segment != "." && segment != ".." {
		segment = strings.TrimRightFunc(segment, func(c rune) bool { return c == '.' || isBlank(c) })
	}
	return segment
}

// isBlank reports whether a character is a blank or a control character.
func isBlank(c rune) bool { return c <= ' ' || c == 0x7f }

// Encodings says which encodings are decoded.
type Encodings uint8

const (
	// Everything is every percent-encoded byte, and the %uXXXX of some servers.
	Everything Encodings = iota
	// Bytes is every percent-encoded byte.
	Bytes
	// Unreserved is what needs no encoding (RFC 3986, 6.2.2.2).
	Unreserved

	exceptSlashes // nor backslashes: a server that decodes segments leaves them in their segment
	slashes       // only these, and backslashes
)

// has reports whether a byte is decoded.
func (e Encodings) has(c byte) bool {
	switch e {
	case exceptSlashes:
		return c != '/' && c != '\\'
	case slashes:
		return c == '/' || c == '\\'
	case Unreserved:
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
	}
	return true
}

// Decode decodes a text once. What is no encoding stays.
func Decode(text string, e Encodings) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	made := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			if c, is := unhex(text, i+1); is && e.has(c) {
				made = append(made, c)
				i += 2
				continue
			}
			if i+1 < len(text) && text[i+1]|0x20 == 'u' && e == Everything {
				high, isHigh := unhex(text, i+2)
				low, isLow := unhex(text, i+4)
				if isHigh && isLow {
					made = utf8.AppendRune(made, rune(high)<<8|rune(low))
					i += 5
					continue
				}
			}
		}
		made = append(made, text[i])
	}
	return string(made)
}

// unhex returns the byte that two hexadecimal digits are.
func unhex(text string, at int) (c byte, is bool) {
	if at+1 >= len(text) {
		return 0, false
	}
	high, low := message.HexDigit(text[at]), message.HexDigit(text[at+1])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// Overlong decodes UTF-8 as lenient decoders do, which accept sequences that are longer than they must be.
func Overlong(text string) string {
	made := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		lead, more := text[i], 0
		switch {
		case lead>>5 == 0x6:
			r, more = rune(lead&0x1f), 1
		case lead>>4 == 0xe:
			r, more = rune(lead&0xf), 2
		case lead>>3 == 0x1e:
			r, more = rune(lead&0x7), 3
		}
		for ; more > 0 && i+size < len(text) && text[i+size]>>6 == 0x2; more-- {
			r = r<<6 | rune(text[i+size]&0x3f)
			size++
		}
		made = utf8.AppendRune(made, r)
		i += size
	}
	return string(made)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// spell encodes what a client cannot send in a path.
func spell(text string) string {
	const digits = "0123456789ABCDEF"
	var made []byte // nil as long as nothing is encoded
	for i := range len(text) {
		c := text[i]
		isSent := c > ' ' && c < 0x7f && c != '?' && c != '#'
		if c == '%' {
			_, isSent = unhex(text, i+1)
		}
		switch {
		case !isSent:
			if made == nil {
				made = append(make([]byte, 0, len(text)+16), text[:i]...)
			}
			made = append(made, '%', digits[c>>4], digits[c&15])
		case made != nil:
			made = append(made, c)
		}
	}
	if made == nil {
		return text
	}
	return string(made)
}
