package plain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A subresourceStore is the storage of a subresource that the backend keeps itself.
type subresourceStore struct{ Store }

// IsOpaque implements storage.Strategy.
func (s *subresourceStore) IsOpaque(i *resource.Info) bool {
	return i.Verb == resource.VerbPatch && !s.appliesPatches() && s.Schema(i.Verb) == nil && s.status == nil &&
		!s.Policies.Concerns(i, admission.Update)
}

// Complete implements storage.Strategy. The object is of a kind of its own.
func (s *subresourceStore) Complete(w *storage.Write) error { return s.complete(w, false) }

// PrepareForCreate implements storage.Strategy.
func (s *subresourceStore) PrepareForCreate(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (s *subresourceStore) PrepareForUpdate(w *storage.Write) error { return s.checkUnread(w) }

// KeepStatus implements storage.Strategy.
func (s *subresourceStore) KeepStatus(*storage.Write) error { return nil }

// SetMetadata implements storage.Strategy.
func (s *subresourceStore) SetMetadata(*storage.Write) {}

// ValidateMetadata implements storage.Strategy.
func (s *subresourceStore) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (s *subresourceStore) Warn(*storage.Write) {}

// NeedsExisting implements storage.Updater.
func (s *subresourceStore) NeedsExisting(w *storage.Write) bool {
	return s.needsExisting(&w.Info, false)
}

// Lock implements storage.Updater.
func (s *subresourceStore) Lock(r *storage.Request, isOpaque bool) error {
	return s.lockFor(r, !isOpaque && s.needsExisting(&r.Info, false))
}

// Get implements storage.Updater.
func (s *subresourceStore) Get(w *storage.Write) error {
	return s.get(w, w.Request.PathTarget(&w.Info), false)
}

// Create implements storage.Creater.
func (s *subresourceStore) Create(w *storage.Write) error { return s.Pass(w) }

// Update implements storage.Updater.
func (s *subresourceStore) Update(w *storage.Write) error { return s.Pass(w) }

// Patched implements storage.Patcher. The object behind the subresource would be stored whole, judged only
// by the policies of the subresource.
func (s *subresourceStore) Patched(w *storage.Write, _ storage.Handler) error {
	return refusedSubresourcePatch(w)
}

// Delete implements storage.Deleter.
func (s *subresourceStore) Delete(w *storage.Write, h storage.Handler) error {
	return s.deleteNative(w, h, s.NeedsExisting, s.Get)
}

// Read implements storage.Reader.
func (s *subresourceStore) Read(r *storage.Request) error {
	return r.Send(s.Backend, &storage.Message{IsSafe: true})
}

// A nativeStatusStore is the storage of the status of objects at a backend that keeps it apart itself.
type nativeStatusStore struct{ subresourceStore }

// Complete implements storage.Strategy.
func (s *nativeStatusStore) Complete(w *storage.Write) error { return s.complete(w, true) }

// PrepareForUpdate implements storage.Strategy.
func (s *nativeStatusStore) PrepareForUpdate(w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	schema := s.Schema(w.Info.Verb)
	if schema == nil || w.Existing.IsAbsent {
		return nil
	}
	if w.Existing.Object == nil && schema.Stale(w.Object.Root()) {
		if err := s.Get(w); err != nil {
			return err
		}
	}
	if w.Existing.Object != nil {
		schema.CarryStatus(w.Object, w.Existing.Root(), w.Info.Verb == resource.VerbPatch)
	}
	return nil
}

// Get implements storage.Updater.
func (s *nativeStatusStore) Get(w *storage.Write) error {
	return s.get(w, w.Request.ItemTarget(&w.Info), true)
}

// Validate implements storage.Strategy.
func (s *nativeStatusStore) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.ValidateStatus(f, w.Object.Root(), w.Existing.Root())
}

// A statusStore is the storage of the status of objects at a backend that does not keep it apart: a write
// to it is one of the object in which nothing else changes (STAT-2).
type statusStore struct{ Store }

// PrepareForUpdate implements storage.Strategy.
func (s *statusStore) PrepareForUpdate(w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	if err := s.replaceStatus(w); err != nil {
		return err
	}
	return s.carryOver(w)
}

// replaceStatus makes of a write to the status the stored object with the status that was sent; the rest of
// what was sent does not count.
func (s *statusStore) replaceStatus(w *storage.Write) error {
	if s.status == nil {
		return nil
	}
	sent, found := storage.Find(w.Object.Root(), s.status)
	merged := w.Existing.Object.Clone()
	var err error
	if stored, had := storage.Find(merged.Root(), s.status); found {
		err = storage.SetAt(merged, s.status, sent.Raw())
	} else if had {
		merged.Remove(stored)
	}
	w.SetObject(merged)
	return s.misplace(w, err)
}

// KeepStatus implements storage.Strategy.
func (s *statusStore) KeepStatus(w *storage.Write) error {
	if len(s.status) == 1 && storage.EqualBeside(w.Object.Root(), w.Existing.Root(), s.status[0]) {
		return nil
	}
	return s.replaceStatus(w)
}

// SetMetadata implements storage.Strategy. What is written is the stored object with another status.
func (s *statusStore) SetMetadata(*storage.Write) {}

// ValidateMetadata implements storage.Strategy.
func (s *statusStore) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (s *statusStore) Warn(*storage.Write) {}

// Delete implements storage.Deleter.
func (s *statusStore) Delete(w *storage.Write, h storage.Handler) error {
	return s.deleteNative(w, h, s.NeedsExisting, s.Get)
}
