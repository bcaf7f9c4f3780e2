package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// update is the way of an object that replaces the stored one.
func (h *handler) update(w *storage.Write) error {
	s := h.scope.storage
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if err := h.body.decode(w); err != nil {
		return err
	}
	if w.Object == nil {
		return h.writeOfNothing(w)
	}
	if err := h.admission.Complete(w); err != nil {
		return err
	}
	h.trail.events.NoteRequest(w.Object)
	if s.NeedsExisting(w) {
		if err := s.Get(w); err != nil {
			return err
		}
	}
	if err := h.admission.keepOwned(s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := s.PrepareForUpdate(w); err != nil { // what it may not change stays as it is stored
		return err
	}
	if err := h.admission.setDefaults(s, w); err != nil {
		return err
	}
	if err := h.admit(s, w); err != nil {
		return err
	}
	return s.Update(w)
}
