package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// A DescribedOperation is an operation that files describe, with the checks of its requests.
type DescribedOperation struct {
	Method, Path string
	// Scope says by which routes requests come that are meant.
	Scope resource.Scope
	// Resource is the name by which policies match the operation, a subresource behind a slash; "" if it is no verb of
	// a resource.
	Resource string
	// Verb is the verb of the resource, or the method in lower case.
	Verb string
	// Parameters is how many parameters are checked.
	Parameters int
	// Bodies are the media types that are taken, the ones with a schema first; nil if no body is described. Schemas is
	// how many have one.
	Bodies  []string
	Schemas int
	// Credentials are what a request needs one of.
	Credentials []string
	// Answers is how many answers are declared, if answers are checked.
	Answers int
	// HasDefaults says that the body gets defaults.
	HasDefaults bool
	// Preconditions says who compares If-Match and its like, for objects.
	Preconditions string
	// Described is the resource; nil if the operation is no verb of one.
	Described *resource.Resource
	// RefusesOthers says that writes by methods which no file describes at the path are refused; else they are
	// undescribed.
	RefusesOthers bool
}

// Routes returns the routes by which requests of the operation come.
func (f *DescribedOperation) Routes(routes []Route) (names []string) {
	for i := range routes {
		if r := &routes[i]; f.Scope.Covers(r.Place()) && applicability.ServedBy(*r, []string{f.Path}, routes) != "" {
			names = append(names, cmp.Or(r.Name, r.Host+r.PathPrefix)+" to "+r.Upstream)
		}
	}
	return names
}

// Upstreams returns the upstreams that requests of the operation are sent to, each once.
func (f *DescribedOperation) Upstreams(routes []Route) (names []string) {
	for i := range routes {
		if r := &routes[i]; f.Scope.Covers(r.Place()) && !slices.Contains(names, r.Upstream) &&
			applicability.ServedBy(*r, []string{f.Path}, routes) != "" {
			names = append(names, r.Upstream)
		}
	}
	return names
}

// Holds says what is checked of requests, and what is done with them.
func (f *DescribedOperation) Holds() string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(f.Parameters == 1, "1 parameter")
	add(f.Parameters > 1, "%d parameters", f.Parameters)
	add(len(f.Credentials) > 0, "credentials %s", strings.Join(f.Credentials, " or "))
	add(len(f.Bodies) > 0, "bodies %s", strings.Join(f.Bodies, ", "))
	add(f.Schemas == 1, "a schema")
	add(f.Schemas > 1, "%d schemas", f.Schemas)
	add(f.HasDefaults, "defaults")
	add(f.Answers > 0, "answers")
	add(f.Preconditions != "", "preconditions %s", f.Preconditions)
	add(f.RefusesOthers, "no other writes")
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, "; ")
}

// DescribedOperations returns the operations that the files describe, by path and method. A resource at the paths of an
// API server has one row. locksAlone says that there are several gateways, and each locks objects for its own writes
// alone.
func (s *Set) DescribedOperations(locksAlone bool) (all []DescribedOperation) {
	for _, r := range s.registry.Resources() {
		for _, path := range r.Paths {
			all = append(all, s.ofResource(r, path, locksAlone)...)
		}
		if len(r.Paths) == 0 {
			all = append(all, DescribedOperation{Method: "*", Path: applicability.KubernetesPath(r), Scope: r.Scope,
				Resource: r.GroupResource().String(), RefusesOthers: true})
		}
	}
	for _, d := range s.registry.Documented() {
		one := DescribedOperation{Method: d.Method, Path: d.Template, Scope: d.Scope, Verb: strings.ToLower(d.Method)}
		one.note(s.contracts[d.ID])
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b DescribedOperation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return all
}

// ofResource returns the operations of a resource at one of its paths.
func (s *Set) ofResource(r *resource.Resource, path string, locksAlone bool) (all []DescribedOperation) {
	name := r.GroupResource().String()
	if o := r.Operation; o != nil && o.Subresource != "" {
		name += "/" + o.Subresource
	}
	route := path
	if at := slices.Index(r.Paths, path); at < len(r.Written.Routes) {
		route = r.Written.Routes[at]
	}
	for _, method := range r.MethodsAt(path) {
		one := DescribedOperation{Method: method.Name, Path: route, Scope: r.Scope, Resource: name,
			Verb: method.Verb.String(), Described: r}
		if r.Envelope == resource.Kubernetes || r.Operation == nil && s.Judges(r) {
			one.RefusesOthers = true
		}
		i := resource.Info{IsResource: true, Group: r.Group, Version: r.Version, Resource: r.Names.Plural,
			Verb: method.Verb}
		if r.Operation != nil {
			i.Subresource = r.Operation.Subresource
		}
		one.note(s.Operation(r, &i))
		if of := s.SchemaFor(r, method.Verb); of != nil && method.Verb.HasBody() {
			one.Schemas = max(one.Schemas, 1)
			one.HasDefaults = one.HasDefaults || method.Verb != resource.VerbPatch && of.Root().HasDefaults()
		}
		if r.Operation == nil && method.Verb.OfObject() {
			one.Preconditions = preconditionsOf(&r.Backend, locksAlone)
		}
		all = append(all, one)
	}
	return all
}

// preconditionsOf says who compares preconditions, and of Auto also why.
func preconditionsOf(b *resource.Backend, locksAlone bool) string {
	said := b.Preconditions.String()
	switch {
	case b.Preconditions != resource.AutoPreconditions:
		return said
	case b.Versions == resource.NativeVersions:
		return said + ": the backend, which has versions of its own"
	case locksAlone:
		return said + ": the backend, because each gateway locks for itself alone"
	}
	return said + ": the gateway, unless the backend is proved to compare them"
}

// note takes what a document says of the requests.
func (f *DescribedOperation) note(o *contract.Operation) {
	if o == nil {
		return
	}
	f.Parameters, f.Answers = len(o.Parameters), len(o.Answers)
	for _, hasSchema := range []bool{true, false} {
		for k := range o.Bodies {
			if b := &o.Bodies[k]; (b.Schema != nil) == hasSchema {
				f.Bodies = append(f.Bodies, b.Media)
			}
		}
	}
	f.Schemas = 0
	for k := range o.Bodies {
		if o.Bodies[k].Schema != nil {
			f.Schemas++
		}
	}
	for _, set := range o.Security {
		var names []string
		for _, c := range set {
			names = append(names, cmp.Or(c.Scheme, c.Name))
		}
		f.Credentials = append(f.Credentials, strings.Join(names, "+"))
	}
}

// Judges reports whether policies, conventions or a schema judge writes of a resource.
func (s *Set) Judges(r *resource.Resource) bool {
	i := resource.Info{IsResource: true, Group: r.Group, Version: r.Version, Resource: r.Names.Plural,
		APIVersion: r.APIVersion()}
	if s.Admission().For(&i).IsNamed(resource.AdmitAll) {
		return true
	}
	conventions := s.Conventions().For(&i)
	for _, verb := range r.Verbs("") {
		i.Verb = verb
		switch o := s.Operation(r, &i); {
		case verb.Operation() == 0:
		case conventions.Concern(&i, verb.Operation()), verb.HasBody() && s.SchemaFor(r, verb) != nil:
			return true
		case o != nil && slices.ContainsFunc(o.Bodies, func(b contract.Body) bool { return b.Schema != nil }):
			return true
		}
	}
	return false
}
