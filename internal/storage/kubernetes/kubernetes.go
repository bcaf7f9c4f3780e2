// Package kubernetes is the storage of an API server, or of something that behaves like one. The
// server keeps versions, status and metadata itself, so that little is prepared here. Only the
// server knows the result of a write: dry runs ask it, and the writes after them are pinned
// to the version that it answered with.
package kubernetes

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Options describe a resource at an API server.
type Options struct {
	Backend *storage.Backend
	Limits  *storage.Limits
	// Policies are the policies that may match operations on the resource, or the subresource.
	Policies *admission.Scoped
	// Resource describes the objects; nil if no policy file does.
	Resource *resource.Resource
	Schemas  storage.Schemas
	// Status is the field that only the status subresource may write; nil for none.
	Status resource.FieldPath
	// MergeType returns the type by which objects of a kind are merged.
	MergeType func(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type
	// PreviewsWrites says that validating policies see what the server would store.
	PreviewsWrites bool
	// Proofs are of the backend's being an API server; all its resources share them.
	Proofs *Proofs
	// ChecksNames says that names of objects without a schema must have Kubernetes' form.
	ChecksNames bool
}

// A Store is the storage of the objects of a resource, or of a subresource of theirs. What differs is in its strategy.
type Store struct {
	Options
	strategy   strategy
	hasOwnKind bool // it is a subresource whose object is of a kind of its own
}

var _ storage.Storage = (*Store)(nil)

// New returns the storage of the objects of a resource, or of a subresource of it.
func New(o Options, subresource string) *Store {
	switch subresource {
	case "":
		return &Store{o, objectStrategy{}, false}
	case "status":
		return &Store{o, statusStrategy{}, false}
	}
	o.Schemas = storage.Schemas{}
	return &Store{o, subresourceStrategy{}, true}
}

// Scaler implements storage.Storage. The server has every Scale itself.
func (s *Store) Scaler() storage.Scaler { return nil }

// Shower implements storage.Storage.
func (s *Store) Shower() storage.Shower { return s }
