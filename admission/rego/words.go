package rego

import (
	"regexp"
	"strings"
)

// OPA's built-in functions repeat the errors of the packages of Go that they use, with the names of
// these packages and with types of Go. A client knows none of them.

// rewordings replace what a package says, in their order.
var rewordings = []struct {
	said *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\basn1: (structure|syntax) error(?:: .*)?`), "$1 error in ASN.1 data"},
	{regexp.MustCompile(`\bjw[kst]\.[A-Z]\w*: `), ""},
	{regexp.MustCompile(`\bstrconv\.[A-Z]\w*: parsing `), "parsing "},
	{regexp.MustCompile(`(^|: )(?:(?:encoding/\w+|net/url|time|x509|tls): )+`), "$1"},
	{regexp.MustCompile(`\bjson: cannot unmarshal (\w+) into Go .*`), "it must not be a $1 there"},
	{regexp.MustCompile(`\(type: ast\.(\w+)\)$`), "($1)"},
	{regexp.MustCompile(`can't evaluate field (\S+) in type .*`), "there is no field $1"},
	{regexp.MustCompile(`(?s)\binvalid map key: (?:map\[|\[\]).*`), "a key must be a text, a number or a boolean"},
	{regexp.MustCompile(`\bruntime error: .*`), "internal error"},
}

// worded says what went wrong in a built-in function without what only the program knows. The message begins with the
// name of the function.
func worded(message string) string {
	name, said, found := strings.Cut(message, ": ")
	if !found {
		return message
	}
	for _, r := range rewordings {
		said = r.said.ReplaceAllString(said, r.by)
	}
	return name + ": " + said
}
