package meta

import (
	"strings"
)

// The checks of this file say yes to what k8s.io/apimachinery accepts and are quick about it. What they do not know
// goes to the library, which finds the words for what is wrong.

// charSet is a set of sets of characters.
type charSet uint8

const (
	lower charSet = 1 << iota
	upper
	digits
	dash
	dot
	underscore
	colon

	letters = lower | upper
	alnums  = letters | digits
)

// charSets holds the sets that a character is in: one look rather than a comparison for each range.
var charSets = func() (sets [256]charSet) {
	for c := range 26 {
		sets['a'+c], sets['A'+c] = lower, upper
	}
	for c := range 10 {
		sets['0'+c] = digits
	}
	sets['-'], sets['.'], sets['_'], sets[':'] = dash, dot, underscore, colon
	return sets
}()

// within reports whether all characters are in one of the sets.
func within(s string, sets charSet) bool {
	for i := range len(s) {
		if charSets[s[i]]&sets == 0 {
			return false
		}
	}
	return true
}

// between is within, but the first character and the last one must be of other sets.
func between(s string, ends, sets charSet) bool {
	return charSets[s[0]]&ends != 0 && charSets[s[len(s)-1]]&ends != 0 && within(s, sets)
}

// isLabelValue is content.IsLabelValue.
func isLabelValue(s string) bool { return s == "" || isLabelName(s) }

// isLabelName is the part of a qualified name after the slash.
func isLabelName(s string) bool {
	return s != "" && len(s) <= 63 && between(s, alnums, alnums|dash|underscore|dot)
}

// isLabelKey is content.IsLabelKey. With anyCase upper case is right in the prefix too, as in annotations.
func isLabelKey(s string, anyCase bool) bool {
	for i := range len(s) {
		if charSets[s[i]]&(alnums|dash|underscore|dot) == 0 {
			return s[i] == '/' && isSubdomain(s[:i], anyCase) && isLabelName(s[i+1:])
		}
	}
	return s != "" && len(s) <= 63 && charSets[s[0]]&alnums != 0 && charSets[s[len(s)-1]]&alnums != 0
}

// isSubdomain is content.IsDNS1123Subdomain.
func isSubdomain(s string, anyCase bool) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	inner := lower | digits
	if anyCase {
		inner = alnums
	}
	previous := dot
	for i := range len(s) {
		c := charSets[s[i]]
		if c&inner == 0 && (c&(dash|dot) == 0 || previous&dot != 0 || c == dot && previous == dash) {
			return false
		}
		previous = c
	}
	return previous&inner != 0
}

// isLabel is content.IsDNS1123Label.
func isLabel(s string) bool {
	return len(s) <= 63 && isSubdomain(s, false) && strings.IndexByte(s, '.') < 0
}

// IsKind reports whether a kind is a DNS label of RFC 1035 but for its case.
func IsKind(s string) bool {
	return s != "" && len(s) <= 63 && between(s, alnums, alnums|dash) && charSets[s[0]]&letters != 0
}

// isSegment reports whether s is surely a segment of a path.
func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && within(s, alnums|dash|dot|underscore|colon)
}

// isPrintable reports whether s is printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
