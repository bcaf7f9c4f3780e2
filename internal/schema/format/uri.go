package format

import (
	"net/netip"
	"strings"
	"unicode/utf8"
)

// isURI reports whether s is a URI as RFC 3986 (3) has it: with a scheme.
func isURI(s string) bool { return reference(s, false, false) }

func isURIReference(s string) bool { return reference(s, true, false) }

// isIRI reports whether s is what RFC 3987 (2.2) makes of that: letters of all languages are allowed.
func isIRI(s string) bool { return reference(s, false, true) }

func isIRIReference(s string) bool { return reference(s, true, true) }

// The characters that may stand in a part of a URI besides the unreserved ones and what is encoded.
const (
	subDelimiters = "!$&'()*+,;="
	inUser        = subDelimiters + ":"
	inPath        = subDelimiters + ":@/"
	inQuery       = inPath + "?"
)

// reference reports whether s is a URI or, if it may be relative, a reference.
func reference(s string, mayBeRelative, isIRI bool) bool {
	s, fragment, _ := strings.Cut(s, "#")
	s, query, _ := strings.Cut(s, "?")
	if !consists(fragment, inQuery, isIRI, false) || !consists(query, inQuery, isIRI, isIRI) {
		return false
	}
	if end := schemeOf(s); end > 0 {
		s = s[end:]
	} else if first, _, _ := strings.Cut(s, "/"); !mayBeRelative || strings.Contains(first, ":") {
		return false
	}
	if rest, found := strings.CutPrefix(s, "//"); found {
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		if !isAuthority(rest[:end], isIRI) {
			return false
		}
		s = rest[end:]
	}
	return consists(s, inPath, isIRI, false)
}

// schemeOf returns where what follows the scheme begins; 0 if there is none.
func schemeOf(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case letter(c), i > 0 && (digit(c) || strings.IndexByte("+-.", c) >= 0):
		case i > 0 && c == ':':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

func isAuthority(s string, isIRI bool) bool {
	if user, host, found := strings.Cut(s, "@"); found {
		if !consists(user, inUser, isIRI, false) {
			return false
		}
		s = host
	}
	port := ""
	if rest, isLiteral := strings.CutPrefix(s, "["); isLiteral {
		literal, after, isClosed := strings.Cut(rest, "]")
		if !isClosed || !isLiteralAddress(literal) || after != "" && after[0] != ':' {
			return false
		}
		port = strings.TrimPrefix(after, ":")
	} else {
		host, after, _ := strings.Cut(s, ":")
		if port = after; !consists(host, subDelimiters, isIRI, false) {
			return false
		}
	}
	return strings.Trim(port, "0123456789") == ""
}

// isLiteralAddress reports whether s may stand in brackets: an address of IP of version 6, or of a later one.
func isLiteralAddress(s string) bool {
	if s != "" && s[0]|0x20 == 'v' {
		version, address, _ := strings.Cut(s[1:], ".")
		return version != "" && strings.Trim(version, "0123456789abcdefABCDEF") == "" &&
			address != "" && !strings.Contains(address, "%") && consists(address, inUser, false, false)
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// consists reports whether s has unreserved characters, encoded bytes and some others alone.
func consists(s, others string, isIRI, isPrivate bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case alnum(c), strings.IndexByte("-._~", c) >= 0, strings.IndexByte(others, c) >= 0:
		case c == '%':
			if i+2 >= len(s) || !hexDigit(s[i+1]) || !hexDigit(s[i+2]) {
				return false
			}
			i += 2
		case c >= utf8.RuneSelf && isIRI:
			r, size := utf8.DecodeRuneInString(s[i:])
			if size == 1 || !isOfIRIs(r) && !(isPrivate && isOfPrivateUse(r)) {
				return false
			}
			i += size - 1
		default:
			return false
		}
	}
	return true
}

// isOfIRIs reports whether a character beyond ASCII may stand in an IRI: ucschar of RFC 3987.
func isOfIRIs(r rune) bool {
	switch {
	case r < 0xA0, r > 0xD7FF && r < 0xF900, r > 0xFDCF && r < 0xFDF0, r > 0xFFEF && r < 0x10000, r > 0xDFFFD &&
		r < 0xE1000:
		return false
	}
	return r&0xFFFF < 0xFFFE && r < 0xF0000
}

// isOfPrivateUse reports whether the query of an IRI may have the character: iprivate of RFC 3987.
func isOfPrivateUse(r rune) bool {
	return r >= 0xE000 && r <= 0xF8FF || r >= 0xF0000 && r&0xFFFF < 0xFFFE
}
