package schema

import "strings"

// The checks of this file say yes to what k8s.io/apimachinery accepts and are quick about it. What they do not know
// goes to the library, which finds the words for what is wrong.

// isLabelValue is content.IsLabelValue.
func isLabelValue(s string) bool { return s == "" || isLabelName(s) }

// isLabelName is the part of a qualified name after the slash.
func isLabelName(s string) bool {
	n := len(s)
	if n == 0 || n > 63 || !alnum(s[0]) || !alnum(s[n-1]) {
		return false
	}
	for i := 1; i < n-1; i++ {
		if c := s[i]; !alnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// isLabelKey is content.IsLabelKey. With anyCase upper case is right in the prefix too, as in annotations.
func isLabelKey(s string, anyCase bool) bool {
	slash := strings.IndexByte(s, '/')
	if slash < 0 {
		return isLabelName(s)
	}
	return isSubdomain(s[:slash], anyCase) && isLabelName(s[slash+1:])
}

// isSubdomain is content.IsDNS1123Subdomain.
func isSubdomain(s string, anyCase bool) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	previous := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case digit(c), 'a' <= c && c <= 'z', anyCase && letter(c):
		case c == '-':
			if previous == '.' {
				return false
			}
		case c == '.':
			if previous == '.' || previous == '-' {
				return false
			}
		default:
			return false
		}
		previous = c
	}
	return previous != '.' && previous != '-'
}

// isLabel is content.IsDNS1123Label.
func isLabel(s string) bool {
	return len(s) <= 63 && isSubdomain(s, false) && strings.IndexByte(s, '.') < 0
}

// isKind tells whether a kind is a DNS label of RFC 1035 but for its case.
func isKind(s string) bool {
	n := len(s)
	if n == 0 || n > 63 || !letter(s[0]) || !alnum(s[n-1]) {
		return false
	}
	for i := 1; i < n-1; i++ {
		if !alnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

// isSegment tells whether s is surely a segment of a path.
func isSegment(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '-' && c != '.' && c != '_' && c != ':' {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

// isPrintable tells whether s is printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
