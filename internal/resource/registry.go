package resource

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry finds the resource of a request. It is immutable and safe for
// concurrent use.
type Registry struct {
	resources  []*Resource
	documented []*Documented
	// byName has the resources at Kubernetes paths.
	byName map[schema.GroupVersionResource]*Resource
	// known has their groups and plurals, whatever the version.
	known map[schema.GroupResource]struct{}
	// templates is the root of the trie of path templates.
	templates node
}

// NewRegistry checks the resources, numbers them and the documented operations, and indexes their paths, except
// the ones that a scope has for some routes only: [Registry.Within] finds them. Paths may be equal if no route
// has to have both. The error joins one error for everything that is wrong.
func NewRegistry(resources []*Resource, documented ...*Documented) (*Registry, error) {
	r := newRegistry(resources, documented)
	var errs []error
	for i, d := range documented {
		d.ID = i
	}
	defined := make(map[definition]struct{})
	for i, res := range resources {
		res.ID = i
		res.apiVersion = res.GroupVersion().String()
		if err := res.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		d := res.definition()
		if _, twice := defined[d]; twice {
			errs = append(errs, fmt.Errorf("resource '%s' in version '%s' must not be defined more than once",
				res.GroupResource(), res.Version))
			continue
		}
		defined[d] = struct{}{}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, scope := range r.scopes() {
		if _, err := r.where(func(s *Scope) bool { return s.contains(scope) }); err != nil {
			return nil, err
		}
	}
	open, err := r.where((*Scope).IsOpen)
	if err != nil {
		return nil, err
	}
	open.resources, open.documented = r.resources, r.documented
	return open, nil
}

// indexAll adds the paths of all resources and of the documented operations.
func (r *Registry) indexAll() error {
	var errs []error
	for _, res := range r.resources {
		errs = append(errs, r.index(res)...)
	}
	return errors.Join(append(errs, r.indexDocumented()...)...)
}

func newRegistry(resources []*Resource, documented []*Documented) *Registry {
	return &Registry{
		resources: resources, documented: documented,
		byName: make(map[schema.GroupVersionResource]*Resource),
		known:  make(map[schema.GroupResource]struct{}),
	}
}

// selected returns a registry of some of the resources, which keep their numbers, and of the operations that are
// documented for a place.
func (r *Registry) selected(resources []*Resource, at *RouteRef) *Registry {
	s := newRegistry(resources,
		slices.DeleteFunc(slices.Clone(r.documented), func(d *Documented) bool { return !d.Scope.Covers(at) }))
	_ = s.indexAll() // two of one place are found when the files are checked against the routes
	return s
}

// index adds the paths of a resource.
func (r *Registry) index(res *Resource) (errs []error) {
	if len(res.Paths) == 0 {
		r.byName[res.GroupVersionResource()] = res
		r.known[res.GroupResource()] = struct{}{}
	}
	for _, template := range res.Paths {
		if err := r.templates.add(template, res); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// indexDocumented adds the paths of the documented operations.
func (r *Registry) indexDocumented() (errs []error) {
	for _, d := range r.documented {
		if err := r.templates.addDocumented(d); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// eachTemplate calls f for each template of a path.
func (r *Registry) eachTemplate(f func(template string)) {
	for _, res := range r.resources {
		for _, template := range res.Paths {
			f(template)
		}
	}
	for _, d := range r.documented {
		f(d.Template)
	}
}

// A definition distinguishes resources. A resource may have several operations beside its objects.
type definition struct {
	schema.GroupVersionResource
	Operation
}

func (r *Resource) definition() definition {
	d := definition{GroupVersionResource: r.GroupVersionResource()}
	if r.Operation != nil {
		d.Operation = *r.Operation
	}
	return d
}

// Resources returns all resources, each at the index that is its ID.
func (r *Registry) Resources() []*Resource { return r.resources }

// Methods implements [Resolver]: the methods of the verbs, and the ones that only documents have.
func (r *Registry) Methods() []string {
	all := methods[1:]
	for _, d := range r.documented {
		if methodOf(d.Method) == methodOther && !slices.Contains(all, d.Method) {
			all = append(all[:len(all):len(all)], d.Method)
		}
	}
	return all
}

// Documented returns the documented operations that are no verbs of resources, each at the index that is its ID.
func (r *Registry) Documented() []*Documented { return r.documented }

// check checks the forms of the names of a resource (RES-3).
func (r *Resource) check() error {
	var errs []error
	bad := func(what, value string, msgs []string) {
		for _, msg := range msgs {
			errs = append(errs, fmt.Errorf("%s '%s' of resource '%s': %s", what, value, r.GroupResource(), msg))
		}
	}
	bad("version", r.Version, content.IsDNS1123Label(r.Version))
	bad("name", r.Names.Plural, content.IsDNS1123Label(r.Names.Plural))
	if r.Group != "" {
		bad("group", r.Group, content.IsDNS1123Subdomain(r.Group))
	}
	if r.Names.Kind == "" {
		bad("kind", r.Names.Kind, []string{"must be set"})
	}
	for _, s := range r.Subresources.Other {
		bad("subresource", s, content.IsDNS1123Label(s))
	}
	return errors.Join(errs...)
}
