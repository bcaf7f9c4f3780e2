package plain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// subresourceBodies are the bodies of a subresource, whose objects are of a kind of their own.
type subresourceBodies struct{ a *access }

// IsOpaque implements storage.Strategy.
func (s subresourceBodies) IsOpaque(i *resource.Info) bool { return s.a.leavesPatch(i) }

// CheckOptions implements storage.Strategy.
func (s subresourceBodies) CheckOptions(w *storage.Write) error { return checkOptions(s.a.Resource, w) }

// Complete implements storage.Strategy.
func (s subresourceBodies) Complete(w *storage.Write) error { return s.a.complete(w, false) }

// subresourceStrategy leaves objects of a subresource as they are.
type subresourceStrategy struct{ a *access }

// PrepareForCreate implements storage.Strategy.
func (subresourceStrategy) PrepareForCreate(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (s subresourceStrategy) PrepareForUpdate(w *storage.Write) error {
	return checkUnread(s.a.Resource, w)
}

// KeepStatus implements storage.Strategy.
func (subresourceStrategy) KeepStatus(*storage.Write) error { return nil }

// SetMetadata implements storage.Strategy.
func (subresourceStrategy) SetMetadata(*storage.Write) {}

// Validate implements storage.Strategy.
func (subresourceStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

// ValidateMetadata implements storage.Strategy.
func (subresourceStrategy) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (subresourceStrategy) Warn(*storage.Write) {}

// storedSubresource reads the path of a subresource.
type storedSubresource struct{ a *access }

// NeedsExisting implements storage.Updater.
func (s storedSubresource) NeedsExisting(w *storage.Write) bool {
	return s.a.reader.needsExisting(&w.Info, false)
}

// Get implements storage.Updater.
func (s storedSubresource) Get(w *storage.Write) error {
	return s.a.reader.get(w, w.Exchanges.PathTarget(&w.Info), false)
}

// Lock implements storage.Updater.
func (s storedSubresource) Lock(r *storage.Request, isOpaque bool) error {
	return s.a.locker.lockFor(r, !isOpaque && s.a.reader.needsExisting(&r.Info, false))
}
