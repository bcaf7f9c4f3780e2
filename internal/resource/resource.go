// Package resource reads the method and target of a request: which verb on
// which resource, namespace and name (Info), and which of the resources that
// the policy files describe that is (Resource). It reads strictly: a target
// that two servers could read in two ways is refused, and one that is accepted
// is forwarded byte for byte.
package resource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/rollout"
)

// Resource is one resource in one version, as a policy file describes it. It
// must not change once it is in a Registry.
type Resource struct {
	// ID is the resource's index in its Registry, set by NewRegistry.
	ID int

	Group, Version string
	Names          Names
	// Scope says which requests the file describes.
	Scope Scope

	// Namespaced resources have {namespace} in their item paths.
	Namespaced bool
	// Singleton resources have one object: each of their paths is that object's.
	Singleton bool
	// Paths are the resource's path templates ("/v2/orders",
	// "/v2/tenants/{namespace}/orders/{name}"): a template with {name} is an
	// item, any other a collection; of a namespaced resource, a collection
	// without {namespace} can only be listed and watched. Further variables
	// stand for any segment. Empty means the Kubernetes paths
	// "/apis/GROUP/VERSION/…" ("/api/VERSION/…" for the empty group).
	Paths []string
	// Written says how the author wrote the Paths, if that is otherwise.
	Written Written
	// Slashes says how the paths may be spelled before an ordinary API.
	Slashes Slashes
	Methods Methods
	// Operation is set if requests to the paths do something other than to read and write objects.
	Operation    *Operation
	Subresources Subresources

	// Envelope and Fields say how the objects look.
	Envelope Envelope
	Fields   Fields
	// ReadDefaults says whether clients that read objects of a plain backend see the defaults of what is missing.
	ReadDefaults ReadDefaults
	// Unshown is set if the answer to a GET is not known to show the object in the shape of the bodies.
	Unshown Unshown

	// HasOwnQuery says that a plain backend has all parameters of the query for itself: none is read
	// as Kubernetes reads it.
	HasOwnQuery bool
	// Writes says what clients may send, Backend what a plain backend does with it.
	Writes  Writes
	Backend Backend
	// Errors says what clients get of errors.
	Errors Errors
	// Rollout says how far the description is in force; nil: for all requests.
	Rollout *rollout.Plan

	// apiVersion is the group and version as objects state them.
	apiVersion string
}

// Written are path templates as their author wrote them.
type Written struct {
	// Routes are the templates with the author's own names of variables.
	Routes []string
	// Matrix has the variables of the Routes whose segments begin with a semicolon: ";id=5". No other
	// segment may have one.
	Matrix []string
}

// Names are the names of a resource and its kind, as in a CustomResourceDefinition.
type Names struct {
	Kind, ListKind, Plural, Singular string
	ShortNames, Categories           []string
}

// Subresources are the parts of an object that have paths below its own.
type Subresources struct {
	// OtherPaths says what becomes of requests below the paths that no file describes.
	OtherPaths OtherPaths
	// Status reports whether there is /status.
	Status bool
	// Scale says what /scale reads and writes; nil if there is none.
	Scale *Scaling
	// Other are further subresources, by their path segment.
	Other []string
}

// Has reports whether the resource declares the subresource.
func (s *Subresources) Has(name string) bool {
	if name == "status" && s.Status || name == "scale" && s.Scale != nil {
		return true
	}
	return slices.Contains(s.Other, name)
}

// Scaling says where objects keep what the scale subresource reads and writes.
// The paths are nil if the backend makes the scale itself.
type Scaling struct {
	Replicas       FieldPath // in the spec
	StatusReplicas FieldPath
	Selector       FieldPath // nil if there is none
}

// Writes says what clients may send.
type Writes struct {
	// UnconditionalUpdate lets a PUT replace whatever is stored without naming
	// its version, CreateOnUpdate one create what does not exist.
	UnconditionalUpdate, CreateOnUpdate bool
	// MediaTypes are the types besides JSON in which clients of a plain backend
	// may send objects. The gateway makes JSON of them.
	MediaTypes []string
	// PatchTypes are the types besides the usual ones in which clients of a plain
	// backend may send merge patches.
	PatchTypes []string
	// NameMayChange lets a change give another value to the field that repeats the name of a Bare object.
	NameMayChange bool
	// EmptyBodies lets a POST have no body. There is nothing to validate by the schema then.
	EmptyBodies bool
	Items       Items
	// FieldValidation applies to a write that does not say it in its query; FieldValidationUnset
	// means Warn, as in Kubernetes.
	FieldValidation FieldValidation
}

// Errors says what clients get of errors.
type Errors struct {
	// ArePassed says that errors of a plain backend come as they are, and not as a Status.
	ArePassed bool
	// Format says how the gateway's own refusals are written; "" leaves it to the route.
	Format string
	// Template is the name of the template of the format Template.
	Template string
}

// Items says what policies see of a body that is an array.
type Items uint8

const (
	// ItemsWhole shows them the array.
	ItemsWhole Items = iota
	// ItemsEach shows them one item after the other.
	ItemsEach
)

// ItemsNamed returns the value that policy files write so.
func ItemsNamed(name string) Items {
	if name == "Each" {
		return ItemsEach
	}
	return ItemsWhole
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
	return schema.GroupResource{Group: r.Group, Resource: r.Names.Plural}
}

// GroupVersionResource returns the group, version and plural name.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Names.Plural}
}

// GroupKind returns the group and kind.
func (r *Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Names.Kind}
}

// GroupVersionKind returns the group, version and kind.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Names.Kind}
}

// OtherPaths says what becomes of requests below the paths of a resource, if no file describes them.
type OtherPaths uint8

const (
	// OtherPathsUnset is Deny for objects of Kubernetes' form, Pass for all others.
	OtherPathsUnset OtherPaths = iota
	// OtherPathsPass lets them pass as paths that no file describes.
	OtherPathsPass
	// OtherPathsDeny refuses them.
	OtherPathsDeny
)

// OtherPathsNamed returns the value that policy files write so.
func OtherPathsNamed(name string) OtherPaths {
	switch name {
	case "Pass":
		return OtherPathsPass
	case "Deny":
		return OtherPathsDeny
	}
	return OtherPathsUnset
}

// Unshown says what happens to writes if the answer to a GET is not known to show the stored object.
type Unshown uint8

const (
	// IsShown: it is known to.
	IsShown Unshown = iota
	// UnshownRefusedIfNeeded refuses a write if anything needs the stored object.
	UnshownRefusedIfNeeded
	// UnshownRefused refuses all writes of stored objects.
	UnshownRefused
	// UnshownPassed refuses none.
	UnshownPassed
)

// UnshownNamed returns the value that policy files write so.
func UnshownNamed(name string) Unshown {
	switch name {
	case "Refuse":
		return UnshownRefused
	case "Pass":
		return UnshownPassed
	}
	return UnshownRefusedIfNeeded
}

// ReadDefaults says whether what is read of a plain backend gets the defaults of what is missing in it.
type ReadDefaults uint8

const (
	// ReadDefaultsUnset fills in objects of Kubernetes' form, in which what is missing has its default.
	ReadDefaultsUnset ReadDefaults = iota
	// ReadDefaultsFill fills in all objects.
	ReadDefaultsFill
	// ReadDefaultsOff fills in none.
	ReadDefaultsOff
)

// ReadDefaultsNamed returns the value that policy files write so.
func ReadDefaultsNamed(name string) ReadDefaults {
	switch name {
	case "Fill":
		return ReadDefaultsFill
	case "Off":
		return ReadDefaultsOff
	}
	return ReadDefaultsUnset
}

// FillsReads reports whether what is read of a plain backend gets the defaults of what is missing in it.
func (r *Resource) FillsReads() bool {
	if r.ReadDefaults == ReadDefaultsUnset {
		return r.Envelope == Kubernetes
	}
	return r.ReadDefaults == ReadDefaultsFill && r.Unshown == IsShown
}

// ShowsItems reports whether policies see the items of a body that is an array one after the other.
func (r *Resource) ShowsItems() bool { return r != nil && r.Writes.Items == ItemsEach }

// ClosesOtherPaths reports whether requests below the paths of the resource are refused, unless a file describes them.
func (r *Resource) ClosesOtherPaths() bool {
	if r.Subresources.OtherPaths == OtherPathsUnset {
		return r.Envelope == Kubernetes
	}
	return r.Subresources.OtherPaths == OtherPathsDeny
}

// readsOptions reports whether the query may have the options of Kubernetes. A resource at Kubernetes'
// own paths that no file describes has them.
func (r *Resource) readsOptions() bool { return r == nil || !r.HasOwnQuery }

// RouteOf returns how the author wrote one of the paths.
func (r *Resource) RouteOf(path string) string {
	if at := slices.Index(r.Paths, path); at >= 0 && at < len(r.Written.Routes) {
		return r.Written.Routes[at]
	}
	return path
}

// hasItem reports whether a path template leads to an object.
func (r *Resource) hasItem(template string) bool {
	return r.Singleton || strings.Contains(template, "{name}")
}
