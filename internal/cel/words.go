package cel

import (
	"regexp"
	"strings"
)

// Failures of cel-go, Kubernetes' libraries and Go's packages name types of Go, packages and, if
// they print a value, an address or the members of a map in any order. A client knows none of them,
// and the answers to equal requests are equal. [worded] leaves what the language itself has words
// for.

// rewording replaces what a library says.
type rewording struct {
	said *regexp.Regexp
	by   func(parts []string) string
}

func replacement(said, by string) rewording {
	return rewording{regexp.MustCompile(said), func(parts []string) string {
		text := by
		for i, part := range parts[1:] {
			text = strings.ReplaceAll(text, "$"+string(rune('1'+i)), part)
		}
		return text
	}}
}

// rewordings are in their order. Patterns of whole sentences begin where the sentence does, so that
// no text of a client is taken for one.
var rewordings = []rewording{
	{regexp.MustCompile(`^(invalid qualifier type: |unsupported comprehension range type: |unsupported map key type: |got ')([*\w.\[\]]+)('?)`), func(p []string) string {
		return p[1] + typeName(p[2]) + p[3]
	}},
	{regexp.MustCompile(`(?s)^unsupported conversion to ref\.Val: \(([*\w.\[\]]+)\).*`), func(p []string) string {
		return "no value of the language can be made of " + typeName(p[1])
	}},
	{regexp.MustCompile(`^internal error: runtime error: hash of unhashable type ([*\w.\[\]]+)$`),
		func(p []string) string {
			return "a value of the type " + typeName(p[1]) + " cannot be a key, or be compared as one"
		}},
	replacement(`(?s)^internal error: .*`, "internal error"),
	replacement(`(?s)^(join: invalid input): .*`, "$1: each item must be a string"),
	replacement(`(?s)^(cannot initialize optional (?:list element|entry '.*?')) from non-optional value.*`, "$1 from a value that is not optional"),
	replacement(`(network address parse error during conversion from string: ){2,}`, "$1"),
	replacement(`: (?:netip\.)?Parse(?:Prefix|Addr)\("(?:[^"\\]|\\.)*"\): `, ": "),
	replacement(`\bstrconv\.[A-Z]\w*: parsing `, "parsing "),
	replacement(`(^|: )(?:net/url|time): `, "$1"),
}

// worded says what went wrong without what only the program knows.
func worded(text string) string {
	for _, r := range rewordings {
		if !r.said.MatchString(text) {
			continue
		}
		text = r.said.ReplaceAllStringFunc(text,
			func(match string) string { return r.by(r.said.FindStringSubmatch(match)) })
	}
	return text
}

// typeNames are the types of the language by Go's types of their values.
var typeNames = map[string]string{
	"Bool": "bool", "Bytes": "bytes", "Double": "double", "Duration": "google.protobuf.Duration", "Int": "int",
	"Null":   "null_type",
	"String": "string", "Timestamp": "google.protobuf.Timestamp", "Uint": "uint", "Optional": "optional_type",
	"Type":     "type",
	"Quantity": "kubernetes.Quantity", "URL": "kubernetes.URL", "Semver": "kubernetes.Semver",
	"Format": "kubernetes.NamedFormat",
	"IP":     "net.IP", "CIDR": "net.CIDR", "Documents": "list", "Made": "object", "Record": "object",
}

// typeName returns the language's name of a type of Go.
func typeName(of string) string {
	name := of[strings.LastIndexByte(of, '.')+1:]
	if known, found := typeNames[name]; found {
		return known
	}
	switch lower := strings.ToLower(name); {
	case strings.Contains(lower, "list"):
		return "list"
	case strings.Contains(lower, "map"):
		return "map"
	}
	return "another type"
}
