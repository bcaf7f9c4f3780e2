package proxy

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// scale is the way of a Scale, which asks for another number of replicas. It is admitted by the
// policies that match the subresource, and then, as an update of the object that it stands for, by
// the policies that match the object.
func (h *handler) scale(w *storage.Write) error {
	s, scaler := h.scope.storage, h.scope.scaler
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	decode := h.body.decode
	if w.Info.Verb == resource.VerbPatch {
		decode = h.body.decodePatch
	}
	if err := decode(w); err != nil {
		return err
	}
	if err := s.Get(w); err != nil {
		return err
	}
	asked := h.asked
	asked.Begin(h.request)
	if err := scaler.ReadScale(w, asked); err != nil {
		return err
	}
	if err := h.admission.mutate(s, asked); err != nil {
		return err
	}
	if err := h.admission.Validate(asked); err != nil {
		return err
	}
	h.admission.Forget()
	if err := scaler.ApplyScale(w, asked); err != nil {
		return err
	}
	object := scaler.Object()
	if err := h.admit(object, w); err != nil {
		return err
	}
	return object.Update(w)
}
