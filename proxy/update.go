package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// update is the way of an object that replaces the stored one.
func update(r *request, w *storage.Write) error {
	s := r.scope.storage
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if err := decodeBody(r, w); err != nil {
		return err
	}
	if w.Object == nil {
		return writeOfNothing(r, w)
	}
	if err := complete(r, w); err != nil {
		return err
	}
	r.trail.events.NoteRequest(w.Object)
	if s.NeedsExisting(w) {
		if err := s.Get(w); err != nil {
			return err
		}
	}
	if err := keepOwned(r, s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := s.PrepareForUpdate(w); err != nil { // what it may not change stays as it is stored
		return err
	}
	if err := setDefaults(r, s, w); err != nil {
		return err
	}
	if err := admit(r, s, w); err != nil {
		return err
	}
	return s.Update(w)
}
