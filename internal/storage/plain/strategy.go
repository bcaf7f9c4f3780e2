package plain

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectStrategy prepares objects of the resource.
type objectStrategy struct{ a *access }

// PrepareForCreate implements storage.Strategy: a client's status never counts (STAT-1), nor does a uid
// (META-1).
func (s objectStrategy) PrepareForCreate(w *storage.Write) error {
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	s.dropSystemMetadata(w)
	return nil
}

// PrepareForUpdate implements storage.Strategy.
func (s objectStrategy) PrepareForUpdate(w *storage.Write) error {
	if err := checkVersion(s.a.Resource, w); err != nil {
		return err
	}
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	if err := s.a.reader.carryOver(w); err != nil {
		return err
	}
	if w.Existing.IsAbsent {
		s.dropSystemMetadata(w)
	}
	return nil
}

// protectStatus takes a status that the client sent out of the object, and puts the stored one in its place,
// so that a PUT leaves it as it is (STAT-1).
func (s objectStrategy) protectStatus(w *storage.Write) error {
	if s.a.status == nil {
		return nil
	}
	if sent, found := storage.Find(w.Object.Root(), s.a.status); found {
		w.Object.Remove(sent)
	}
	if w.Existing.Object == nil || !keepsStatus(s.a.Resource) {
		return nil
	}
	if w.Shown == storage.ShownNothing {
		w.Shown = shows(s.a.Resource, storage.ShownStatus)
	}
	stored, found := storage.Find(w.Existing.Root(), s.a.status)
	if !found {
		return nil
	}
	return s.a.misplace(w, storage.SetAt(w.Object, s.a.status, stored.Raw()))
}

// warnOfStatus warns a client that the status it sent is dropped. Clients of an ordinary API may
// not know that there is a status. A client of Kubernetes knows, and one that sends the stored one
// loses nothing.
func (s objectStrategy) warnOfStatus(w *storage.Write) {
	if s.a.Resource.Envelope != resource.Bare || !isRegistered(s.a.Resource) {
		return
	}
	sent, found := storage.Find(w.Object.Root(), s.a.status)
	if !found {
		return
	}
	if stored, _ := storage.Find(w.Existing.Root(), s.a.status); stored.Valid() && document.EqualNodes(sent, stored) {
		return
	}
	w.Exchanges.Warn("`" + storage.PathString(s.a.status) + "` may be written by the API alone: the value that was sent was dropped")
}

// KeepStatus implements storage.Strategy.
func (s objectStrategy) KeepStatus(w *storage.Write) error {
	if s.a.status == nil {
		return nil
	}
	var stored document.Node
	if w.Existing.Object != nil && keepsStatus(s.a.Resource) {
		stored, _ = storage.Find(w.Existing.Root(), s.a.status)
	}
	if set, _ := storage.Find(w.Object.Root(), s.a.status); document.EqualNodes(set, stored) {
		return nil
	}
	return s.protectStatus(w)
}

// Validate implements storage.Strategy.
func (s objectStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	if w.Info.Verb == resource.VerbPatch && s.a.Schemas.BlamesPatches {
		return schema.ValidatePatched(f, w.Object.Root(), w.Existing.Root(), w.DeclaredPatch.SchemaOf(), w.KeepsNulls)
	}
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

// carryOver completes an update by what is stored: immutable fields that are left out (DEF-7), and members
// of unions that a new discriminator makes stale (VAL-6).
func (s storedReader) carryOver(w *storage.Write) error {
	schema := s.Schemas.Of(w)
	if schema == nil || w.Existing.IsAbsent {
		return nil
	}
	if w.Existing.Object == nil && schema.Stale(w.Object.Root()) {
		if err := s.getObject(w); err != nil {
			return err
		}
	}
	if w.Existing.Object != nil {
		schema.Carry(w.Object, w.Existing.Root(), w.Info.Verb == resource.VerbPatch)
	}
	return nil
}

// misplace notes that another value is in the place of the status. With a schema that is said
// together with everything else that is wrong.
func (c *collection) misplace(w *storage.Write, err error) error {
	w.Misplaced = nil
	if c.Schemas.Of(w) == nil {
		return w.Unplaced(err)
	}
	if misplaced, is := errors.AsType[*field.Error](err); is {
		w.Misplaced = field.ErrorList{misplaced}
	}
	return nil
}
