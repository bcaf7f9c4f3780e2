package config

import (
	"cmp"
	"fmt"
	"slices"
)

// ErrorFormat says how the gateway itself refuses requests.
type ErrorFormat string

// The formats.
const (
	// StatusErrors are Status objects, as Kubernetes has them.
	StatusErrors ErrorFormat = "Status"
	// ProblemErrors are problem details (RFC 9457).
	ProblemErrors ErrorFormat = "Problem"
	// TemplateErrors are written by an ErrorTemplate of the policy files.
	TemplateErrors ErrorFormat = "Template"
)

var errorFormats = []ErrorFormat{StatusErrors, ProblemErrors, TemplateErrors}

// ErrorFormatOn returns the format of refusals on a route to the upstream: the route's own word, else the
// upstream's, else Status.
func (u *UpstreamSpec) ErrorFormatOn(r *Route) ErrorFormat {
	return cmp.Or(r.ErrorFormat, u.ErrorFormat, StatusErrors)
}

// ErrorTemplateOn returns the name of the template of refusals on a route to the upstream; "" if they have another
// format.
func (u *UpstreamSpec) ErrorTemplateOn(r *Route) string {
	if r.ErrorFormat != "" {
		return r.ErrorTemplate
	}
	return u.ErrorTemplate
}

// errorFormat checks the settings of an upstream or a route. The clients of an API server read Status alone.
func (v *validator) errorFormat(path string, value ErrorFormat, template string, u *UpstreamSpec) {
	switch {
	case value == TemplateErrors && template == "":
		v.check(path+".errorTemplate", "Required value: must be the name of an ErrorTemplate of the policy files where `errorFormat` is 'Template'")
	case value != TemplateErrors && template != "":
		v.check(path+".errorTemplate", "must not be set unless `errorFormat` is 'Template'")
	}
	path += ".errorFormat"
	switch {
	case value != "" && !slices.Contains(errorFormats, value):
		v.check(path, notOneOf(string(value), errorFormats))
	case value != StatusErrors && value != "" && u != nil && u.Dialect == Kubernetes:
		v.check(path, fmt.Sprintf("must not be '%s' for the upstream '%s', whose dialect is Kubernetes: its clients read Status alone", value, u.Name))
	}
}
