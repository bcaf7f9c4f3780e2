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

// A Store is the storage of the objects of a resource, or of a subresource of theirs. It does itself what
// all stores do in the same way. What differs is in its strategies, as in k8s.io/apiserver's
// registry/generic/registry; kinds.go names them for each kind of store.
type Store struct {
	collection *collection

	reads     storage.Reader
	bodies    bodies
	strategy  strategy
	stored    stored
	writes    writes
	patches   storage.Patcher
	deletions storage.Deleter
	scaler    storage.Scaler // nil if the gateway makes no Scale of the object
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

// Read implements storage.Reader.
func (s *Store) Read(r *storage.Request) error { return s.reads.Read(r) }

// Schema implements storage.Strategy.
func (s *Store) Schema(w *storage.Write) *schema.Schema { return s.collection.Schemas.Of(w) }

// MediaTypes implements storage.Strategy. As a server may, the gateway gives JSON to clients that ask for YAML, which
// it is.
func (s *Store) MediaTypes() *storage.MediaTypes { return &s.collection.mediaTypes }

// StatusPath implements storage.Strategy.
func (s *Store) StatusPath() resource.FieldPath { return s.collection.status }

// OperationOptions implements storage.Strategy: a deletion has the options of its body, unless the API's document says what
// that is. Other writes have none.
func (s *Store) OperationOptions(w *storage.Write, operation admission.Operation) (document.Node, error) {
	if operation != admission.Delete || w.Object == nil || w.Declared != nil {
		return document.Node{}, nil
	}
	return w.Object.Root(), nil
}

// Reveal implements storage.Strategy. The gateway sets all of it itself.
func (s *Store) Reveal(*storage.Write, bool) {}

// IsOpaque implements storage.Strategy.
func (s *Store) IsOpaque(i *resource.Info) bool { return s.bodies.IsOpaque(i) }

// CheckOptions implements storage.Strategy.
func (s *Store) CheckOptions(w *storage.Write) error { return s.bodies.CheckOptions(w) }

// Complete implements storage.Strategy.
func (s *Store) Complete(w *storage.Write) error { return s.bodies.Complete(w) }

// CheckKeys implements storage.Strategy.
func (s *Store) CheckKeys(w *storage.Write) error { return s.collection.checkKeys(w) }

// PrepareForCreate implements storage.Strategy.
func (s *Store) PrepareForCreate(w *storage.Write) error { return s.strategy.PrepareForCreate(w) }

// PrepareForUpdate implements storage.Strategy.
func (s *Store) PrepareForUpdate(w *storage.Write) error { return s.strategy.PrepareForUpdate(w) }

// KeepStatus implements storage.Strategy.
func (s *Store) KeepStatus(w *storage.Write) error { return s.strategy.KeepStatus(w) }

// SetMetadata implements storage.Strategy.
func (s *Store) SetMetadata(w *storage.Write) { s.strategy.SetMetadata(w) }

// Validate implements storage.Strategy.
func (s *Store) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return s.strategy.Validate(schema, f, w)
}

// ValidateMetadata implements storage.Strategy.
func (s *Store) ValidateMetadata(w *storage.Write) field.ErrorList {
	return s.strategy.ValidateMetadata(w)
}

// Warn implements storage.Strategy.
func (s *Store) Warn(w *storage.Write) { s.strategy.Warn(w) }

// NeedsExisting implements storage.Updater.
func (s *Store) NeedsExisting(w *storage.Write) bool { return s.stored.NeedsExisting(w) }

// Get implements storage.Updater.
func (s *Store) Get(w *storage.Write) error { return s.stored.Get(w) }

// Lock implements storage.Updater.
func (s *Store) Lock(r *storage.Request, isOpaque bool) error { return s.stored.Lock(r, isOpaque) }

// Preview implements storage.Creater. The backend stores the object as it is sent.
func (s *Store) Preview(*storage.Write) error { return nil }

// Create implements storage.Creater.
func (s *Store) Create(w *storage.Write) error { return s.writes.Create(w) }

// Update implements storage.Updater.
func (s *Store) Update(w *storage.Write) error {
	return s.collection.writeCompared(w, s.writes.Update)
}

// Refusal implements storage.Updater.
func (s *Store) Refusal(_ *storage.Write, refusal error) error { return refusal }

// Patched implements storage.Patcher.
func (s *Store) Patched(w *storage.Write) (isPrepared bool, err error) { return s.patches.Patched(w) }

// Patch implements storage.Patcher.
func (s *Store) Patch(w *storage.Write) error {
	return s.collection.writeCompared(w, s.patches.Patch)
}

// PrepareForDelete implements storage.Deleter.
func (s *Store) PrepareForDelete(w *storage.Write) error { return s.deletions.PrepareForDelete(w) }

// Delete implements storage.Deleter.
func (s *Store) Delete(w *storage.Write) error { return s.deletions.Delete(w) }

// DeleteCollection implements storage.Deleter.
func (s *Store) DeleteCollection(w *storage.Write) (storage.Collection, error) {
	return s.deletions.DeleteCollection(w)
}

// Scaler implements storage.Storage.
func (s *Store) Scaler() storage.Scaler { return s.scaler }

// Shower implements storage.Storage. An ordinary API shows nothing that it has not stored.
func (s *Store) Shower() storage.Shower { return nil }

// Pass implements storage.Storage.
func (s *Store) Pass(w *storage.Write) error {
	return s.collection.writeCompared(w, s.collection.pass)
}
