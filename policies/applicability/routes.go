package applicability

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Route leads requests to an upstream: those for a named host before those for any, then the
// longest prefix of whole segments.
type Route struct {
	Name, Host, PathPrefix string // an empty Host is any
	Upstream               string
	// Target takes the place of PathPrefix in what the upstream gets; empty is PathPrefix itself.
	Target string
	// Kubernetes reports whether the dialect of the upstream is Kubernetes.
	Kubernetes bool
	// IsAnonymous reports whether the gateway has no account at the upstream.
	IsAnonymous bool
	// IsClosed reports whether requests that no file describes are all refused.
	IsClosed bool
	// ErrorTemplate is the name of the ErrorTemplate that writes refusals; "" if none does.
	ErrorTemplate string
	// ErrorTemplateAt is the path of that name in the configuration; "" if it is not known.
	ErrorTemplateAt string
}

// target returns the segments that paths begin with at the upstream.
func (r *Route) target() []string {
	if r.Target != "" {
		return SegmentsOf(r.Target)
	}
	return SegmentsOf(r.PathPrefix)
}

// place is how scopes name the route.
func (r *Route) Place() *resource.RouteRef {
	return &resource.RouteRef{Host: r.Host, Upstream: r.Upstream, Route: r.Name}
}

// words name the route to the author of a file.
func (r *Route) Words() string {
	if r.Name != "" {
		return "the route '" + r.Name + "'"
	}
	host := "any host"
	if r.Host != "" {
		host = "the host '" + r.Host + "'"
	}
	return fmt.Sprintf("the route of %s and the prefix '%s'", host, r.PathPrefix)
}

// Served is a resource with paths of its own, and the line of a file that says so.
type Served struct {
	*resource.Resource
	// form is the position of the objects' form in the file, paths that of the paths.
	form, paths finding.Finding
}

// Served returns the resources of the files that have paths of their own.
func (x *Index) Served() []Served {
	var served []Served
	for _, r := range x.Resources {
		if len(r.Paths) == 0 {
			continue
		}
		form, paths := r.At, r.At
		if r.From.Kind == "APIResource" {
			form, paths = "spec.envelope", "spec.paths"
		}
		at := func(path string) finding.Finding { return finding.Of(r.From, path) }
		served = append(served, Served{r.Resource, at(form), at(paths)})
	}
	return served
}

// A NamedPlace is a route as scopes name it, and as messages do.
type NamedPlace struct {
	*resource.RouteRef
	Words string
}

// ConfiguredPlaces names the routes of the configuration.
func ConfiguredPlaces(routes []Route) []NamedPlace {
	all := make([]NamedPlace, len(routes))
	for i := range routes {
		all[i] = NamedPlace{routes[i].Place(), routes[i].Words()}
	}
	return all
}

// AreApart finds resources at the same path that one route would have to serve.
func AreApart(registry *resource.Registry, all []Served, places []NamedPlace) []finding.Finding {
	var found []finding.Finding
	for _, at := range places {
		_, err := registry.Within(at.RouteRef)
		for _, one := range Joined(err) {
			var twin *resource.TwinError
			if !errors.As(one, &twin) {
				continue
			}
			for _, r := range all {
				if r.Resource != twin.Resource {
					continue
				}
				f := r.paths
				f.Rule = describedTwice
				f.Message = fmt.Sprintf("%s, as both are for %s; `hosts`, `upstream` and `route` keep them apart", twin,
					at.Words)
				if !slices.Contains(found, f) {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

// LeftOpen finds described paths that a route outside of the scope sends to the same upstream, so
// that they pass undescribed.
func LeftOpen(served []Served, routes []Route) []finding.Finding {
	var found []finding.Finding
	for _, s := range served {
		for _, r := range routes {
			if s.Scope.Covers(r.Place()) || r.IsClosed || r.Kubernetes {
				continue
			}
			path := ServedBy(r, s.Paths, routes)
			isDescribed := slices.ContainsFunc(routes,
				func(other Route) bool { return other.Upstream == r.Upstream && s.Scope.Covers(other.Place()) })
			if path == "" || !isDescribed {
				continue
			}
			f := s.paths
			f.Severity = finding.Warning
			f.Rule = passesUndescribed
			f.Message = fmt.Sprintf("requests for '%s' by %s pass to the upstream '%s' as if nothing described them: widen `hosts`, `upstream` or `route`, "+
				"or set `undescribed: Deny` for that route", path, r.Words(), r.Upstream)
			found = append(found, f)
		}
	}
	return found
}

// Misplaced finds resources that an upstream of the dialect Kubernetes serves, although their
// objects are not of Kubernetes' form. The gateway would ask such a backend by dry runs, which an
// plain API carries out.
//
// A file describes its paths for every host. If another host has an upstream of the dialect Plain
// for them, the file may be meant for that host alone, so that the finding is a warning.
func Misplaced(served []Served, routes []Route) []finding.Finding {
	var found []finding.Finding
	for _, b := range served {
		if b.Envelope != resource.Bare {
			continue
		}
		for _, r := range routes {
			path := ServedBy(r, b.Paths, routes)
			if path == "" || !r.Kubernetes || !b.Scope.Covers(r.Place()) {
				continue
			}
			f := b.form
			f.Rule = wrongDialect
			if elsewhere(r.Host, b.Paths, routes) {
				f.Severity = finding.Warning
				f.Message = fmt.Sprintf("requests for '%s' on %s go to the upstream '%s', whose dialect is Kubernetes, although the objects are not of Kubernetes' form; "+
					"only an upstream of the dialect Plain can serve them", path, hostWords(r.Host), r.Upstream)
			} else {
				f.Message = fmt.Sprintf("objects that are not of Kubernetes' form must be served by an upstream of the dialect Plain, not by '%s': "+
					"set `dialect: Plain` (--dialect Plain) if it is an ordinary API, else add a route that leads '%s' to one", r.Upstream, path)
			}
			found = append(found, f)
			break
		}
	}
	return found
}

func hostWords(host string) string {
	if host == "" {
		return "hosts without a route of their own"
	}
	return "host '" + host + "'"
}

// elsewhere reports whether an upstream of the dialect Plain serves the paths on another host.
func elsewhere(host string, paths []string, routes []Route) bool {
	for _, r := range routes {
		if !r.Kubernetes && r.Host != host && ServedBy(r, paths, routes) != "" {
			return true
		}
	}
	return false
}

// ServedBy returns the first of a resource's paths with requests that a route leads to its
// upstream, "" if there is none.
func ServedBy(r Route, paths []string, routes []Route) string {
	for _, p := range paths {
		pattern := SegmentsOf(p)
		if strings.Contains(p, "{name}") {
			pattern = append(pattern, "{subresource}")
		}
		if meets(r, pattern) && !hidden(r, pattern, routes) {
			return p
		}
	}
	return ""
}

// meets reports whether a route takes some of the requests that a path template matches.
func meets(r Route, pattern []string) bool {
	prefix := r.target()
	if len(prefix) > len(pattern) {
		return false
	}
	for i, s := range prefix {
		if pattern[i] != s && !strings.Contains(pattern[i], "{") {
			return false
		}
	}
	return true
}

// hidden reports whether a longer prefix of the same host takes all requests that a path template
// matches.
func hidden(r Route, pattern []string, routes []Route) bool {
	asked := SegmentsOf(r.PathPrefix) // what clients ask for
	own := len(asked)
	pattern = append(asked, pattern[len(r.target()):]...)
	for _, other := range routes {
		prefix := SegmentsOf(other.PathPrefix)
		if other.Host == r.Host && len(prefix) > own && len(prefix) <= len(pattern) &&
			slices.Equal(prefix, pattern[:len(prefix)]) {
			return true
		}
	}
	return false
}

// SegmentsOf cuts a path, or a path template, into its segments.
func SegmentsOf(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// Joined are the errors that were joined.
func Joined(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
