package resource

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/status"
)

// isLabel is content.IsDNS1123Label without its regular expression, for every
// request.
func isLabel(s string) bool {
	if s == "" || len(s) > content.DNS1123LabelMaxLength || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return hasLabelChars(s)
}

// hasLabelChars reports whether a label may have all characters of s.
func hasLabelChars(s string) bool {
	for i := range len(s) {
		if !labelChars[s[i]] {
			return false
		}
	}
	return true
}

// labelChars are the characters of labels.
var labelChars = func() (set [256]bool) {
	for _, c := range []byte("-0123456789abcdefghijklmnopqrstuvwxyz") {
		set[c] = true
	}
	return set
}()

// isSubdomain is content.IsDNS1123Subdomain without its regular expression;
// unlike in isLabel each part may be longer than 63 characters.
func isSubdomain(s string) bool {
	if len(s) > content.DNS1123SubdomainMaxLength {
		return false
	}
	for {
		part, rest, more := strings.Cut(s, ".")
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' || !hasLabelChars(part) {
			return false
		}
		if !more {
			return true
		}
		s = rest
	}
}

// checkName checks that a decoded name is what the library allows in a path.
func checkName(what, name string) error {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c == '/' || c == '%' || c == '.' && (name == "." || name == "..") {
			return status.BadRequest("the %s in the request path %s", what,
				strings.Join(content.IsPathSegmentName(name), ", "))
		}
	}
	return nil
}

// checkLabel holds a namespace, version, resource or subresource to its form.
func checkLabel(what, s string) error {
	if isLabel(s) {
		return nil
	}
	return status.BadRequest("the %s '%s' in the request path must be a DNS label: %s", what, short(s),
		strings.Join(content.IsDNS1123Label(s), ", "))
}

// checkGroup checks the form of an API group.
func checkGroup(s string) error {
	if isSubdomain(s) {
		return nil
	}
	return status.BadRequest("the API group '%s' in the request path must be a DNS subdomain: %s", short(s),
		strings.Join(content.IsDNS1123Subdomain(s), ", "))
}

// short bounds what a message repeats of a request.
func short(s string) string { return quote.ClipDots(s, quote.MaxSegment) }
