package resource

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry finds the resource of a request. It is immutable and safe for
// concurrent use.
type Registry struct {
	resources []*Resource
	// byName has the resources at Kubernetes paths.
	byName map[schema.GroupVersionResource]*Resource
	// known has their groups and plurals, whatever the version.
	known map[schema.GroupResource]struct{}
	// templates is the root of the trie of path templates.
	templates node
}

// NewRegistry checks the resources, numbers them and indexes their paths, and
// those of requests that pass. The error joins one error for everything that is
// wrong.
func NewRegistry(resources []*Resource, passing ...Passing) (*Registry, error) {
	r := &Registry{
		resources: resources,
		byName:    make(map[schema.GroupVersionResource]*Resource),
		known:     make(map[schema.GroupResource]struct{}),
	}
	var errs []error
	kinds := make(map[schema.GroupVersionResource]struct{})
	for i, res := range resources {
		res.ID = i
		res.apiVersion = res.GroupVersion().String()
		if err := res.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		gvr := res.GroupVersionResource()
		if _, twice := kinds[gvr]; twice {
			errs = append(errs, fmt.Errorf("resource '%s' in version '%s' must not be defined more than once", res.GroupResource(), res.Version))
			continue
		}
		kinds[gvr] = struct{}{}
		if len(res.Paths) == 0 {
			r.byName[gvr] = res
			r.known[res.GroupResource()] = struct{}{}
		}
		for _, template := range res.Paths {
			if err := r.templates.add(template, res); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, p := range passing {
		if err := r.templates.pass(p); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Resources returns all resources, each at the index that is its ID.
func (r *Registry) Resources() []*Resource { return r.resources }

// check holds the names of a resource to their forms (RES-3).
func (r *Resource) check() error {
	var errs []error
	bad := func(what, value string, msgs []string) {
		for _, msg := range msgs {
			errs = append(errs, fmt.Errorf("%s '%s' of resource '%s': %s", what, value, r.GroupResource(), msg))
		}
	}
	bad("version", r.Version, content.IsDNS1123Label(r.Version))
	bad("name", r.Plural, content.IsDNS1123Label(r.Plural))
	if r.Group != "" {
		bad("group", r.Group, content.IsDNS1123Subdomain(r.Group))
	}
	if r.Kind == "" {
		bad("kind", r.Kind, []string{"must be set"})
	}
	for _, s := range r.Subresources {
		bad("subresource", s, content.IsDNS1123Label(s))
	}
	return errors.Join(errs...)
}
