package resource

import (
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/status"
)

// maxSegments is how many segments of a path are recorded; no resource has as many, so a path with
// more is only scanned.
const maxSegments = 16

// path is a request path cut at its slashes.
type path struct {
	raw string
	// segments are the first maxSegments; n counts all of them, without the
	// empty one that a trailing slash makes.
	segments [maxSegments]string
	n        int
	trailing bool
	// disguised says what the path has that is only refused in paths of resources: an encoded
	// character that needs no encoding. In the first segment, which isVeiled says, it is refused at every path
	// of an API server, lest "/%61pis" be taken for no resource.
	disguised string
	isVeiled  bool
	// hasSlash says that there is an encoded slash, which is refused unless it is in a value that may have it.
	hasSlash bool
	// matrix is the set of segments that begin with a semicolon, as bits. They are refused unless a template
	// has them: isMatrix.
	matrix   uint16
	isMatrix bool
}

// checkMatrix refuses semicolons that no template has.
func (p *path) checkMatrix() error {
	if p.matrix != 0 && !p.isMatrix {
		return refusedChar(';')
	}
	return nil
}

// scan cuts a path and refuses what two servers could read in two ways: it
// holds for every path, resource or not.
func (p *path) scan(raw string) error {
	p.raw = raw
	if raw == "" || raw[0] != '/' {
		return status.BadRequest("the request path must start with '/'")
	}
	start := 1
	for i := 1; ; {
		for i < len(raw) && pathChars[raw[i]] {
			i++
		}
		if i == len(raw) {
			break
		}
		switch c := raw[i]; {
		case c == '/':
			if err := p.segment(raw[start:i]); err != nil {
				return err
			}
			i++
			start = i
		case c == ';' && raw[start] == ';' && p.n > 0 && p.n < maxSegments:
			p.matrix |= 1 << p.n
			i++
		case c == '%':
			size, err := p.encoded(raw, i)
			if err != nil {
				return err
			}
			i += size
		default:
			return refusedChar(c)
		}
	}
	if start == len(raw) {
		p.trailing = start > 1
		return nil
	}
	return p.segment(raw[start:])
}

func (p *path) segment(s string) error {
	if s == "" {
		return status.BadRequest("the request path must not contain '//'")
	}
	if (s[0] == '.' || s[0] == '%') && isDots(s) {
		return status.BadRequest("the request path must not contain '.' or '..' as a segment, encoded or not")
	}
	if p.n < maxSegments {
		p.segments[p.n] = s
	}
	p.n++
	p.isVeiled = p.isVeiled || p.n == 1 && p.disguised != ""
	return nil
}

// spelled refuses what no path of an API server may have, and no value unless a file lets it.
func (p *path) spelled() error {
	switch {
	case p.hasSlash:
		return status.BadRequest("the request path must not contain '%%2F'")
	case p.disguised != "":
		return p.notDisguised()
	}
	return nil
}

// encoded checks the percent-encoding at raw[i:] and returns its length: for UTF-8, the length of a
// whole character.
func (p *path) encoded(raw string, i int) (int, error) {
	c, ok := unhex(raw, i)
	if !ok {
		return 0, status.BadRequest("the request path must not contain '%%' without two hexadecimal digits")
	}
	switch {
	case c == '/':
		p.hasSlash = true
		return 3, nil
	case c == '\\' || c < ' ' || c == 0x7f:
		return 0, status.BadRequest("the request path must not contain '%s'", raw[i:i+3])
	case c >= utf8.RuneSelf:
		var char [utf8.UTFMax]byte
		n := 0
		for n < len(char) {
			next, ok := unhex(raw, i+3*n)
			if !ok || next < utf8.RuneSelf {
				break
			}
			char[n] = next
			n++
		}
		r, size := utf8.DecodeRune(char[:n])
		if r == utf8.RuneError && size <= 1 {
			return 0, status.BadRequest("the request path must be UTF-8 where it is percent-encoded")
		}
		if r < 0xa0 {
			return 0, status.BadRequest("the request path must not contain control characters")
		}
		return 3 * size, nil
	case p.disguised == "" && (c == '%' || isUnreserved(c)):
		p.disguised = raw[i : i+3]
	}
	return 3, nil
}

// strict refuses what is ambiguous only in paths of resources.
func (p *path) strict(trailingAllowed bool) error {
	if err := p.spelled(); err != nil {
		return err
	}
	if p.trailing && !trailingAllowed {
		return status.BadRequest("the request path must not end in '/'")
	}
	return nil
}

func (p *path) notDisguised() error {
	return status.BadRequest("the request path must not contain '%s': a character that needs no encoding may not be encoded", p.disguised)
}

func refusedChar(c byte) error {
	switch {
	case c < ' ' || c == 0x7f:
		return status.BadRequest("the request target must not contain control characters")
	case c >= utf8.RuneSelf:
		return status.BadRequest("the request target must be percent-encoded outside ASCII")
	}
	return status.BadRequest("the request target must not contain '%c'", c)
}

// isDots reports whether a segment reads '.' or '..' once it is decoded.
func isDots(s string) bool {
	n := 0
	for i := 0; i < len(s); n++ {
		switch {
		case n == 2:
			return false
		case s[i] == '.':
			i++
		case len(s) >= i+3 && s[i] == '%' && s[i+1] == '2' && s[i+2]|0x20 == 'e':
			i += 3
		default:
			return false
		}
	}
	return n > 0
}

// unhex reads the encoded byte at s[i:], which starts with a percent sign.
func unhex(s string, i int) (byte, bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
	if high > 15 || low > 15 {
		return 0, false
	}
	return high<<4 | low, true
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

// decode returns a segment without its percent-encodings, which scan has checked. It allocates only
// if there are any.
func decode(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			b := make([]byte, 0, len(s))
			for j := 0; j < len(s); j++ {
				c := s[j]
				if c == '%' {
					c, _ = unhex(s, j)
					j += 2
				}
				b = append(b, c)
			}
			return string(b)
		}
	}
	return s
}

// isUnreserved reports whether a character needs no encoding anywhere in a URI
// (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' ||
		c == '~'
}

// pathChars are the characters that a path segment may have as they are:
// RFC 3986's pchar without ';', which some servers cut paths at.
var pathChars = charsOf("-._~!$&'()*+,=:@")

// queryChars are the characters that a query may have as they are. Lenient clients leave more
// unencoded than RFC 3986 allows; no reader cuts at these.
var queryChars = charsOf("-._~!$&'()*+,;=:@/?%\"<>[]^`{|}\\")

func charsOf(extra string) (set [256]bool) {
	for c := range set {
		set[c] = isUnreserved(byte(c))
	}
	for _, c := range []byte(extra) {
		set[c] = true
	}
	return set
}
