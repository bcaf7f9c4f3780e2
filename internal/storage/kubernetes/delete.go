package kubernetes

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/storage"
)

// PrepareForDelete implements storage.Deleter. If a policy reads the stored object, the deletion is pinned to its
// version.
func (s *Store) PrepareForDelete(w *storage.Write) error {
	if err := s.readOptions(w); err != nil {
		return err
	}
	if s.NeedsExisting(w) {
		return s.Get(w)
	}
	return nil
}

// Delete implements storage.Deleter. The server deletes.
func (s *Store) Delete(w *storage.Write) error { return s.Update(w) }

// readOptions reads the options of a deletion if something depends on them. The server reads either the
// body or, without one, the query: policies have to see the same, and options that the gateway adds must
// not hide the options in the query.
func (s *Store) readOptions(w *storage.Write) error {
	if !w.Info.IsResource || !s.Policies.Concerns(&w.Info, admission.Delete) && !s.NeedsExisting(w) {
		return nil
	}
	if w.Object != nil {
		w.Info.Options.DryRun = false
	}
	return w.ReadDeleteOptions(s.Limits)
}
