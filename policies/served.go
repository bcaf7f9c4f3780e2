package policies

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
		return segmentsOf(r.Target)
	}
	return segmentsOf(r.PathPrefix)
}

// place is how scopes name the route.
func (r *Route) place() *resource.Place {
	return &resource.Place{Host: r.Host, Upstream: r.Upstream, Route: r.Name}
}

// words name the route to the author of a file.
func (r *Route) words() string {
	if r.Name != "" {
		return "the route '" + r.Name + "'"
	}
	host := "any host"
	if r.Host != "" {
		host = "the host '" + r.Host + "'"
	}
	return fmt.Sprintf("the route of %s and the prefix '%s'", host, r.PathPrefix)
}

// servedResource is a resource with paths of its own, and the line of a file that says so.
type servedResource struct {
	*resource.Resource
	// form is the position of the objects' form in the file, paths that of the paths.
	form, paths Finding
}

// servedIn returns the resources of the files that have paths of their own.
func servedIn(resources []loadedResource) []servedResource {
	var served []servedResource
	for _, r := range resources {
		if len(r.Paths) == 0 {
			continue
		}
		form, paths := r.at.path, r.at.path
		if r.at.from.Kind == "APIResource" {
			form, paths = "spec.envelope", "spec.paths"
		}
		at := func(path string) Finding { return finding.Of(r.at.from, path) }
		served = append(served, servedResource{r.Resource, at(form), at(paths)})
	}
	return served
}

// A namedPlace is a route as scopes name it, and as messages do.
type namedPlace struct {
	*resource.Place
	words string
}

func configuredPlaces(routes []Route) []namedPlace {
	all := make([]namedPlace, len(routes))
	for i := range routes {
		all[i] = namedPlace{routes[i].place(), routes[i].words()}
	}
	return all
}

// twins finds resources at the same path that one route would have to serve.
func (s *Set) twins(places []namedPlace) []Finding {
	var found []Finding
	for _, at := range places {
		_, err := s.registry.Within(at.Place)
		for _, one := range parts(err) {
			var twin *resource.TwinError
			if !errors.As(one, &twin) {
				continue
			}
			for _, r := range s.served {
				if r.Resource != twin.Resource {
					continue
				}
				f := r.paths
				f.Message = fmt.Sprintf("%s, as both are for %s; `hosts`, `upstream` and `route` keep them apart", twin, at.words)
				if !slices.Contains(found, f) {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

// leftOpen finds described paths that a route outside of the scope sends to the same upstream, so
// that they pass undescribed.
func leftOpen(served []servedResource, routes []Route) []Finding {
	var found []Finding
	for _, s := range served {
		for _, r := range routes {
			if s.Scope.Covers(r.place()) || r.IsClosed || r.Kubernetes {
				continue
			}
			path := servedBy(r, s.Paths, routes)
			isDescribed := slices.ContainsFunc(routes, func(other Route) bool { return other.Upstream == r.Upstream && s.Scope.Covers(other.place()) })
			if path == "" || !isDescribed {
				continue
			}
			f := s.paths
			f.Severity = Warning
			f.Message = fmt.Sprintf("requests for '%s' by %s pass to the upstream '%s' as if nothing described them: widen `hosts`, `upstream` or `route`, "+
				"or set `undescribed: Deny` for that route", path, r.words(), r.Upstream)
			found = append(found, f)
		}
	}
	return found
}

// misplaced finds resources that an upstream of the dialect Kubernetes serves, although their
// objects are not of Kubernetes' form. The gateway would ask such a backend by dry runs, which an
// plain API carries out.
//
// A file describes its paths for every host. If another host has an upstream of the dialect Plain
// for them, the file may be meant for that host alone, so that the finding is a warning.
func misplaced(served []servedResource, routes []Route) []Finding {
	var found []Finding
	for _, b := range served {
		if b.Envelope != resource.Bare {
			continue
		}
		for _, r := range routes {
			path := servedBy(r, b.Paths, routes)
			if path == "" || !r.Kubernetes || !b.Scope.Covers(r.place()) {
				continue
			}
			f := b.form
			if elsewhere(r.Host, b.Paths, routes) {
				f.Severity = Warning
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
		if !r.Kubernetes && r.Host != host && servedBy(r, paths, routes) != "" {
			return true
		}
	}
	return false
}

// servedBy returns the first of a resource's paths with requests that a route leads to its
// upstream, "" if there is none.
func servedBy(r Route, paths []string, routes []Route) string {
	for _, p := range paths {
		pattern := segmentsOf(p)
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
	asked := segmentsOf(r.PathPrefix) // what clients ask for
	own := len(asked)
	pattern = append(asked, pattern[len(r.target()):]...)
	for _, other := range routes {
		prefix := segmentsOf(other.PathPrefix)
		if other.Host == r.Host && len(prefix) > own && len(prefix) <= len(pattern) && slices.Equal(prefix, pattern[:len(prefix)]) {
			return true
		}
	}
	return false
}

// segmentsOf cuts a path, or a path template, into its segments.
func segmentsOf(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}
