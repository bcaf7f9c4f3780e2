package plain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// statusReads read a status with its object.
type statusReads struct{ a *access }

// Read implements storage.Reader.
func (s statusReads) Read(r *storage.Request) error {
	edits := s.a.completer.editsAnswer(r)
	if s.a.conditions.tagsRead(r) {
		return s.a.completer.readTagged(r, r.ItemTarget(&r.Info), edits)
	}
	m := storage.Message{Target: r.ItemTarget(&r.Info), IsSafe: true, IsEdited: edits}
	if err := r.Send(s.a.Backend, &m); err != nil || !m.IsEdited {
		return err
	}
	return s.a.completer.completeRead(r, nil, r.Response.ETag())
}

// statusStrategy turns a status that is sent into the object with that status.
type statusStrategy struct{ a *access }

// PrepareForCreate implements storage.Strategy. Nothing is created by its status.
func (statusStrategy) PrepareForCreate(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (s statusStrategy) PrepareForUpdate(w *storage.Write) error {
	if err := checkVersion(s.a.Resource, w); err != nil {
		return err
	}
	if err := s.replaceStatus(w); err != nil {
		return err
	}
	return s.a.reader.carryOver(w)
}

// replaceStatus returns the stored object with the status that was sent; the rest of what was sent
// does not count.
func (s statusStrategy) replaceStatus(w *storage.Write) error {
	if s.a.status == nil {
		return nil
	}
	sent, found := storage.Find(w.Object.Root(), s.a.status)
	merged := w.Existing.Object.Clone()
	var err error
	if stored, had := storage.Find(merged.Root(), s.a.status); found {
		err = storage.SetAt(merged, s.a.status, sent.Raw())
	} else if had {
		merged.Remove(stored)
	}
	w.SetObject(merged)
	w.IsKnown = false
	if w.Shown != storage.ShownMerged {
		w.Shown = shows(s.a.Resource, storage.ShownObject)
	}
	return s.a.misplace(w, err)
}

// KeepStatus implements storage.Strategy.
func (s statusStrategy) KeepStatus(w *storage.Write) error {
	if len(s.a.status) == 1 && storage.EqualBeside(w.Object.Root(), w.Existing.Root(), s.a.status[0]) {
		return nil
	}
	return s.replaceStatus(w)
}

// SetMetadata implements storage.Strategy. What is written is the stored object with another status.
func (statusStrategy) SetMetadata(*storage.Write) {}

// Validate implements storage.Strategy.
func (statusStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

// ValidateMetadata implements storage.Strategy.
func (statusStrategy) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (statusStrategy) Warn(*storage.Write) {}

// nativeStatusBodies are the bodies of objects whose status the backend itself takes.
type nativeStatusBodies struct{ a *access }

// IsOpaque implements storage.Strategy.
func (s nativeStatusBodies) IsOpaque(i *resource.Info) bool { return s.a.leavesPatch(i) }

// CheckOptions implements storage.Strategy.
func (s nativeStatusBodies) CheckOptions(w *storage.Write) error {
	return checkOptions(s.a.Resource, w)
}

// Complete implements storage.Strategy.
func (s nativeStatusBodies) Complete(w *storage.Write) error { return s.a.complete(w, true) }

// nativeStatusStrategy leaves a status to a backend that keeps it apart itself.
type nativeStatusStrategy struct{ a *access }

// PrepareForCreate implements storage.Strategy.
func (nativeStatusStrategy) PrepareForCreate(*storage.Write) error { return nil }

// PrepareForUpdate implements storage.Strategy.
func (s nativeStatusStrategy) PrepareForUpdate(w *storage.Write) error {
	if err := checkVersion(s.a.Resource, w); err != nil {
		return err
	}
	schema := s.a.Schemas.Of(w)
	if schema == nil || w.Existing.IsAbsent {
		return nil
	}
	if w.Existing.Object == nil && schema.Stale(w.Object.Root()) {
		if err := s.a.reader.getObject(w); err != nil {
			return err
		}
	}
	if w.Existing.Object != nil {
		schema.CarryStatus(w.Object, w.Existing.Root(), w.Info.Verb == resource.VerbPatch)
	}
	return nil
}

// KeepStatus implements storage.Strategy.
func (nativeStatusStrategy) KeepStatus(*storage.Write) error { return nil }

// SetMetadata implements storage.Strategy.
func (nativeStatusStrategy) SetMetadata(*storage.Write) {}

// Validate implements storage.Strategy.
func (nativeStatusStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.ValidateStatus(f, w.Object.Root(), w.Existing.Root())
}

// ValidateMetadata implements storage.Strategy.
func (nativeStatusStrategy) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy.
func (nativeStatusStrategy) Warn(*storage.Write) {}
