// Package resource reads the method and target of a request: which verb on
// which resource, namespace and name (Info), and which of the resources that
// the policy files describe that is (Resource). It reads strictly: a target
// that two servers could read in two ways is refused, and one that is accepted
// is forwarded byte for byte.
package resource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Envelope says how the objects of a resource look.
type Envelope uint8

const (
	// Kubernetes objects have kind, apiVersion and metadata; lists have items.
	Kubernetes Envelope = iota
	// Bare objects are ordinary JSON objects; Fields says where what is.
	Bare
)

// String returns the name that policy files use.
func (e Envelope) String() string {
	if e == Bare {
		return "Bare"
	}
	return "Kubernetes"
}

// Concurrency says how a write that depends on the stored object is pinned.
type Concurrency uint8

const (
	// Optimistic pins every such write to the version that was read (by
	// resourceVersion, or by ETag and If-Match); a backend that changed in
	// between answers with a conflict.
	Optimistic Concurrency = iota
	// BestEffort does without a precondition where the backend has none. The
	// writes of one gateway to one object come one after the other; another
	// writer between the read and the write goes unnoticed.
	BestEffort
)

// String returns the name that policy files use.
func (c Concurrency) String() string {
	if c == BestEffort {
		return "BestEffort"
	}
	return "Optimistic"
}

// FieldPath is where a value is in an object: member names from the root. The
// empty path is the root itself.
type FieldPath []string

// Fields says where a Bare resource keeps what Kubernetes objects keep in
// metadata, status and items. A nil path means that the objects have no such
// field.
type Fields struct {
	// Name is the field that repeats the name in the URL.
	Name FieldPath
	// Version is the field that changes with every write; nil means that no
	// field does. Kubernetes objects may have one too.
	Version FieldPath
	// Status is the field that only the backend's own components may write.
	Status FieldPath
	// Items is the array within a list answer; the empty, non-nil path is an
	// answer that is itself the array.
	Items FieldPath
}

// Resource is one resource in one version, as a policy file describes it. It
// must not change once it is in a Registry.
type Resource struct {
	// ID is the resource's index in its Registry, set by NewRegistry.
	ID int

	Group, Version, Kind, ListKind, Plural, Singular string
	ShortNames, Categories                           []string

	// Namespaced resources have {namespace} in their item paths.
	Namespaced bool
	// Status and Scale say which subresources exist besides Subresources.
	Status, Scale bool
	// Subresources are further subresources, by their path segment.
	Subresources []string

	// Selectable are the fields that field selectors may name besides the name
	// and the namespace.
	Selectable []FieldPath

	// Paths are the resource's path templates ("/v2/orders",
	// "/v2/tenants/{namespace}/orders/{name}"): those with {name} are items,
	// the others collections; of a namespaced resource, a collection without
	// {namespace} can only be listed and watched. Empty means the Kubernetes paths
	// "/apis/GROUP/VERSION/…" ("/api/VERSION/…" for the empty group).
	Paths []string

	Envelope    Envelope
	Fields      Fields
	Concurrency Concurrency
	// Versions say how the backend tells versions, where it is a plain one.
	Versions Versions
	// Emulated is what the gateway supplies where the backend is a plain one.
	Emulated Capabilities
	// Scaling is set where Scale is.
	Scaling Scaling
	// UnconditionalUpdate lets a PUT replace whatever is stored without naming
	// its version, CreateOnUpdate one create what does not exist.
	UnconditionalUpdate, CreateOnUpdate bool
	// RefusesPatch answers PATCH with 405.
	RefusesPatch bool
	// YAML lets clients of a plain backend send YAML, of which the gateway makes
	// JSON.
	YAML bool
	// FieldValidation is what holds for a write that does not say it in its
	// query; FieldValidationUnset means Warn, as in Kubernetes.
	FieldValidation FieldValidation

	// apiVersion is the group and version as objects state them.
	apiVersion string
}

// APIVersion returns the group and version as objects state them. It is known
// once the resource is in a Registry.
func (r *Resource) APIVersion() string { return r.apiVersion }

// GroupVersion returns the group and version.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupResource returns the group and the plural name.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource returns the group, version and plural name.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// GroupKind returns the group and kind.
func (r *Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// GroupVersionKind returns the group, version and kind.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// HasSubresource tells whether the resource declares the subresource.
func (r *Resource) HasSubresource(name string) bool {
	switch name {
	case "status":
		if r.Status {
			return true
		}
	case "scale":
		if r.Scale {
			return true
		}
	}
	for _, s := range r.Subresources {
		if s == name {
			return true
		}
	}
	return false
}
