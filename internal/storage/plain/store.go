package plain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A Store is the storage of the objects of a resource, or of a subresource of theirs. What differs from one kind of
// store to another is in its strategies, as in k8s.io/apiserver's registry/generic/registry; kinds.go names them for
// each kind.
type Store struct {
	access *access

	storage.Reader
	bodies
	strategy
	stored
	writes
	storage.Patcher
	storage.Deleter
	scaler storage.Scaler // nil if the gateway makes no Scale of the object
}

var _ storage.Storage = (*Store)(nil)

// bodies check the body of a request against the URL. The methods are described at
// storage.Strategy.
type bodies interface {
	IsOpaque(i *resource.Info) bool
	CheckOptions(w *storage.Write) error
	Complete(w *storage.Write) error
}

// A strategy prepares and validates objects. The methods are described at storage.Strategy.
type strategy interface {
	PrepareForCreate(w *storage.Write) error
	PrepareForUpdate(w *storage.Write) error
	KeepStatus(w *storage.Write) error
	SetMetadata(w *storage.Write)
	Validate(s *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result
	ValidateMetadata(w *storage.Write) field.ErrorList
	Warn(w *storage.Write)
}

// stored reads and locks what a write depends on. The methods are described at storage.Updater.
type stored interface {
	NeedsExisting(w *storage.Write) bool
	Get(w *storage.Write) error
	Lock(r *storage.Request, isOpaque bool) error
}

// writes send an admitted object, and complete the answer. The methods are described at
// storage.Creater and storage.Updater.
type writes interface {
	Create(w *storage.Write) error
	Update(w *storage.Write) error
}

// Schema implements storage.Strategy.
func (s *Store) Schema(w *storage.Write) *schema.Schema { return s.access.Schemas.Of(w) }

// MediaTypes implements storage.Strategy. As a server may, the gateway gives JSON to clients that ask for YAML, which
// it is.
func (s *Store) MediaTypes() *storage.MediaTypes { return &s.access.mediaTypes }

// StatusPath implements storage.Strategy.
func (s *Store) StatusPath() resource.FieldPath { return s.access.status }

// OperationOptions implements storage.Strategy: a deletion has the options of its body, unless the API's document
// says what that is. Other writes have none.
func (s *Store) OperationOptions(w *storage.Write, operation admission.Operation) (document.Node, error) {
	if operation != admission.Delete || w.Object == nil || w.Declared != nil {
		return document.Node{}, nil
	}
	return w.Object.Root(), nil
}

// Reveal implements storage.Strategy. The gateway sets all of it itself.
func (s *Store) Reveal(*storage.Write, bool) {}

// CheckKeys implements storage.Strategy.
func (s *Store) CheckKeys(w *storage.Write) error { return s.access.checkKeys(w) }

// Preview implements storage.Creater. The backend stores the object as it is sent.
func (s *Store) Preview(*storage.Write) error { return nil }

// Update implements storage.Updater.
func (s *Store) Update(w *storage.Write) error {
	return s.access.conditions.writeCompared(w, s.writes.Update)
}

// Refusal implements storage.Updater.
func (s *Store) Refusal(_ *storage.Write, refusal error) error { return refusal }

// Patch implements storage.Patcher.
func (s *Store) Patch(w *storage.Write) error {
	return s.access.conditions.writeCompared(w, s.Patcher.Patch)
}

// Scaler implements storage.Storage.
func (s *Store) Scaler() storage.Scaler { return s.scaler }

// Shower implements storage.Storage. An ordinary API shows nothing that it has not stored.
func (s *Store) Shower() storage.Shower { return nil }

// Pass implements storage.Storage.
func (s *Store) Pass(w *storage.Write) error {
	return s.access.conditions.writeCompared(w, s.access.sender.pass)
}
