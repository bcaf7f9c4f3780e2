// Package discovery learns from a Kubernetes API server which resources it serves, and of which
// kinds: by aggregated discovery, or by the lists of each group and version from a server that
// does not have it.
//
// A [Client] asks, and keeps what it learned up to date. A [Catalog] is what it knows at one moment.
package discovery

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource is a resource, or a subresource of one, in one version.
type Resource struct {
	// Kind is the kind of the objects that requests and answers carry. The kind of a subresource
	// may be of another group than the resource: Scale is of autoscaling/v1.
	Kind schema.GroupVersionKind
	// Namespaced reports whether the objects belong to namespaces.
	Namespaced bool
	// HasStatus reports whether the status of the objects is a subresource.
	HasStatus bool
	// Verbs are the verbs that the server lists, such as get, create and deletecollection.
	Verbs []string
}

// A Path names a resource, or a subresource of one, in one version.
type Path struct {
	schema.GroupVersionResource
	// Subresource is empty for the resource itself.
	Subresource string
}

// A Catalog has everything that an API server serves at one moment. It is immutable.
type Catalog struct {
	resources map[Path]*Resource
	// order has the resources, and not their subresources, in the server's order.
	order []schema.GroupVersionResource
	// kinds has the plural names of the resources by their kinds.
	kinds map[schema.GroupVersionKind]string
	// versions has the versions of each resource in the server's order of preference.
	versions map[schema.GroupResource][]string
	// failed are the versions that the server lists, although it cannot say what is in them, and why.
	failed map[schema.GroupVersion]string
}

// GroupVersionPath returns the path of a group and version in the API.
func GroupVersionPath(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.Group + "/" + v.Version
}

func newCatalog() *Catalog {
	return &Catalog{
		resources: map[Path]*Resource{}, kinds: map[schema.GroupVersionKind]string{},
		versions: map[schema.GroupResource][]string{}, failed: map[schema.GroupVersion]string{},
	}
}

// Find returns the resource at a path; nil if the server does not serve it.
func (c *Catalog) Find(p Path) *Resource {
	if c == nil {
		return nil
	}
	return c.resources[p]
}

// Named returns the plural name of the resource whose objects are of the kind, and the resource;
// nil if the server serves none.
func (c *Catalog) Named(kind schema.GroupVersionKind) (plural string, r *Resource) {
	if c == nil {
		return "", nil
	}
	plural, found := c.kinds[kind]
	if !found {
		return "", nil
	}
	return plural, c.resources[Path{GroupVersionResource: kind.GroupVersion().WithResource(plural)}]
}

// Versions returns the versions in which the server serves a resource, the preferred one first.
// The caller must not change them.
func (c *Catalog) Versions(r schema.GroupResource) []string {
	if c == nil {
		return nil
	}
	return c.versions[r]
}

// All returns the resources in the server's order: the versions of a group from the preferred one on.
// The caller must not change it.
func (c *Catalog) All() []schema.GroupVersionResource {
	if c == nil {
		return nil
	}
	return c.order
}

// Failed returns why the server cannot describe the versions that it lists, for example of an
// aggregated API that is down.
func (c *Catalog) Failed() map[schema.GroupVersion]string {
	if c == nil {
		return nil
	}
	return c.failed
}

// complete adds to each resource what its subresources show, once all are known.
func (c *Catalog) complete() {
	for _, gvr := range c.order {
		_, c.resources[Path{GroupVersionResource: gvr}].HasStatus = c.resources[Path{gvr, "status"}]
	}
}

// unspeakable returns an error if the server cannot describe a version, so that what is in it is
// not known.
func (c *Catalog) unspeakable(gv schema.GroupVersion) error {
	if why, found := c.Failed()[gv]; found {
		return fmt.Errorf("the API server cannot speak of %s: %s", gv, why)
	}
	return nil
}

// merge takes in another catalog.
func (c *Catalog) merge(part *Catalog) {
	maps.Copy(c.resources, part.resources)
	maps.Copy(c.kinds, part.kinds)
	maps.Copy(c.versions, part.versions)
	maps.Copy(c.failed, part.failed)
	c.order = append(c.order, part.order...)
}

// Len returns the number of resources and subresources.
func (c *Catalog) Len() int {
	if c == nil {
		return 0
	}
	return len(c.resources)
}

// add takes in a resource. The first resource of a kind has its name.
func (c *Catalog) add(p Path, r *Resource) {
	if _, found := c.resources[p]; found {
		return
	}
	c.resources[p] = r
	if p.Subresource != "" {
		return
	}
	gr := p.GroupResource()
	c.order = append(c.order, p.GroupVersionResource)
	c.versions[gr] = append(c.versions[gr], p.Version)
	if _, found := c.kinds[r.Kind]; !found && r.Kind.GroupVersion() == p.GroupVersion() {
		c.kinds[r.Kind] = p.Resource
	}
}

// keep takes in what was known before of the versions that the server cannot describe at the
// moment: an aggregated API that is down is still the API that it was.
func (c *Catalog) keep(before *Catalog) {
	if before == nil || len(c.failed) == 0 {
		return
	}
	for _, gvr := range before.order {
		if p := (Path{GroupVersionResource: gvr}); c.failed[gvr.GroupVersion()] != "" {
			c.add(p, before.resources[p])
		}
	}
	for p, r := range before.resources {
		if p.Subresource != "" && c.failed[p.GroupVersion()] != "" {
			c.add(p, r)
		}
	}
}

// Equal reports whether both know the same, in the same order.
func (c *Catalog) Equal(d *Catalog) bool {
	if c.Len() != d.Len() || !maps.Equal(c.failed, d.failed) || !slices.Equal(c.All(), d.All()) {
		return false
	}
	for p, r := range c.resources {
		o := d.resources[p]
		if o == nil || r.Kind != o.Kind || r.Namespaced != o.Namespaced || r.HasStatus != o.HasStatus ||
			!slices.Equal(r.Verbs, o.Verbs) {
			return false
		}
	}
	return true
}
