package state

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Mode is how a collection is kept up to date.
type Mode uint8

const (
	// Watch lists once and then follows the changes.
	Watch Mode = iota
	// Poll lists again and again.
	Poll
	// OnDemand lists when a request needs it.
	OnDemand
)

// A Source is a collection of a backend that policies read. It must not change
// once a [Manager] has it.
type Source struct {
	// Name is by which policies read it.
	Name string
	// Upstream is the name of the backend; empty means that to which requests for the
	// path go.
	Upstream string
	// Path is the path of the collection. {namespace} in it is the namespace of the request, for
	// OnDemand alone.
	Path string
	// Query narrows what is listed, encoded; empty for all.
	Query string
	// Items is the path of the objects in the answer; nil means 'items', or the answer itself if
	// that is an array.
	Items resource.FieldPath
	// Kind is of the objects; empty if it is not known.
	Kind schema.GroupVersionKind
	// Namespace is the one that the objects are all in; empty for all namespaces, or
	// none.
	Namespace string

	Mode Mode
	// Period is how often it is listed, for Poll.
	Period time.Duration
	// TTL is how long what was listed counts, for OnDemand.
	TTL time.Duration
	// MaxObjects and MaxBytes bound what is kept: objects, and bytes of their JSON.
	MaxObjects int
	MaxBytes   int64

	// IsOptional says that the backend may not have the collection, which is empty then and looked for again; for
	// Watch alone.
	IsOptional bool

	// MaxStaleness is how old the objects may be; 0 means any age.
	MaxStaleness time.Duration
	// Skip leaves policies out that read the objects when they are not known or too
	// old; otherwise the reading fails.
	Skip bool
}

const requestNamespace = "{namespace}"

// key says which collection is listed, and how. Sources with one key share the objects.
type key struct {
	upstream, path, query, items string
	kind                         schema.GroupVersionKind
	mode                         Mode
	period                       time.Duration
	objects                      int
	bytes                        int64
	isOptional                   bool
}

func (s *Source) key() key {
	k := key{s.Upstream, s.Path, s.Query, "", s.Kind, s.Mode, s.Period, s.MaxObjects, s.MaxBytes, s.IsOptional}
	if s.Items != nil {
		k.items = "." + strings.Join(s.Items, ".")
	}
	return k
}

// Covers reports whether the source has every object of the kind in the namespace, so
// that what is not among them does not exist.
func (s *Source) Covers(kind schema.GroupVersionKind, namespace string) bool {
	return s.Kind == kind && s.Query == "" && !strings.Contains(s.Path, requestNamespace) &&
		(s.Namespace == "" || s.Namespace == namespace)
}

// target is the path and query that a request for the whole collection has.
func (s *Source) target(namespace string) string {
	return withQuery(strings.ReplaceAll(s.Path, requestNamespace, namespace), s.Query)
}

// withQuery adds parameters to a target.
func withQuery(target, query string) string {
	switch {
	case query == "":
		return target
	case strings.Contains(target, "?"):
		return target + "&" + query
	}
	return target + "?" + query
}
