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
)

var errorFormats = []ErrorFormat{StatusErrors, ProblemErrors}

// ErrorFormatOn returns the format of refusals on a route to the upstream: the route's own word, else the
// upstream's, else Status.
func (u *UpstreamSpec) ErrorFormatOn(r *Route) ErrorFormat {
	return cmp.Or(r.ErrorFormat, u.ErrorFormat, StatusErrors)
}

// errorFormat checks the setting of an upstream or a route. The clients of an API server read Status alone.
func (v *validator) errorFormat(path string, value ErrorFormat, u *UpstreamSpec) {
	switch {
	case value != "" && !slices.Contains(errorFormats, value):
		v.check(path, notOneOf(string(value), errorFormats))
	case value == ProblemErrors && u != nil && u.Dialect == Kubernetes:
		v.check(path, fmt.Sprintf("must not be '%s' for the upstream '%s', whose dialect is Kubernetes: its clients read Status alone", value, u.Name))
	}
}
