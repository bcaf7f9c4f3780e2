package wording

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/status"
)

// Kubernetes' checks of a definition say of a default what kube-openapi says of values, which
// breaks the API conventions (VAL-3). It is worded here as the same failure of a request is.
var (
	// place is how kube-openapi begins: the value's path, or nothing, and where the value comes from.
	place = regexp.MustCompile(`^\S* in body `)

	verdicts = []struct {
		said *regexp.Regexp
		say  string
	}{
		{regexp.MustCompile(`^should be at least (\d+) chars long$`), "must be at least $1 characters"},
		{regexp.MustCompile(`^should match '(.*)'$`), "must match the regular expression '$1'"},
		{regexp.MustCompile(`^must be of type ([a-z]+): "[a-z]*"$`), "must be of type $1"},
		{regexp.MustCompile(`^must be of type byte: ".*"$`), status.FormatDetail("byte")},
		{regexp.MustCompile(`^must be of type ([a-z0-9-]+): ".*"$`), "must be a valid '$1'"},
		{regexp.MustCompile(`^Checked value must be of type integer with format int32 in\s*$`),
			"must be between -2147483648 and 2147483647, inclusive"},
		{regexp.MustCompile(`^Checked value must be of type (\S+) with format (\S+) in\s*$`),
			"must be within the range of the format '$2'"},
		{regexp.MustCompile(`^"\S*" must validate one and only one schema \(oneOf\)\. Found none valid$`),
			"must match exactly one of the alternatives in 'oneOf', and matches none"},
		{regexp.MustCompile(`^"\S*" must validate one and only one schema \(oneOf\)\. Found (\d+) valid alternatives$`), "must match exactly one of the alternatives in 'oneOf', and matches $1"},
		{regexp.MustCompile(`^"\S*" must validate at least one schema \(anyOf\)$`),
			"must match at least one of the alternatives in 'anyOf'"},
		{regexp.MustCompile(`^"\S*" must not validate the schema \(not\)$`), "must not match the schema in 'not'"},
		{regexp.MustCompile(`^should `), "must "},
		{regexp.MustCompile(`^may not be more than (\d+) byte`), "must be at most $1 character"},
	}

	// valueless matches failures that name no value, for which kube-openapi gives an empty one.
	valueless = regexp.MustCompile(`^("\S*" must |Checked value )`)

	// summary matches the failure that a failed allOf adds to the failures of its branches.
	summary = regexp.MustCompile(`^"\S*" must validate all the schemas \(allOf\)`)
)

// Reword words a finding of Kubernetes' checks; false is one that says nothing that others do not.
func Reword(err *field.Error) bool {
	if summary.MatchString(err.Detail) {
		return false
	}
	detail := place.ReplaceAllString(err.Detail, "")
	if err.BadValue == "" && valueless.MatchString(detail) {
		err.BadValue = Omitted
	}
	for _, v := range verdicts {
		if v.said.MatchString(detail) {
			detail = v.said.ReplaceAllString(detail, v.say)
			break
		}
	}
	err.Detail = strings.Replace(detail, "at least 1 properties", "at least 1 property", 1)
	_ = Conformant(err)
	return true
}
