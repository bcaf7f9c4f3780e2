package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// patch is the way of a patch: the object that results from it is admitted.
func (h *handler) patch(w *storage.Write) error {
	s := h.scope.storage
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if err := h.body.decodePatch(w); err != nil {
		return err
	}
	if w.Patch == nil {
		return h.writeOfNothing(w)
	}
	if err := s.Patched(w, h.admission); err != nil {
		return err
	}
	if err := h.admission.keepOwned(s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := h.admission.setDefaults(s, w); err != nil {
		return err
	}
	if err := h.admit(s, w); err != nil {
		return err
	}
	return s.Patch(w)
}
