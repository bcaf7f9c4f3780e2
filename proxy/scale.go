package proxy

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// scale is the way of a Scale, which asks for another number of replicas. It is admitted by the
// policies that match the subresource, and then, as an update of the object that it stands for, by
// the policies that match the object.
func scale(r *request, w *storage.Write) error {
	s, scaler := r.scope.storage, r.scope.scaler
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	decode := decodeBody
	if w.Info.Verb == resource.VerbPatch {
		decode = decodePatch
	}
	if err := decode(r, w); err != nil {
		return err
	}
	if err := s.Get(w); err != nil {
		return err
	}
	asked := r.asked
	asked.Begin(r.Request)
	if err := scaler.ReadScale(w, asked); err != nil {
		return err
	}
	if err := mutate(r, s, asked); err != nil {
		return err
	}
	if err := validate(r, asked); err != nil {
		return err
	}
	forget(r)
	if err := scaler.ApplyScale(w, asked); err != nil {
		return err
	}
	object := scaler.Object()
	if err := admit(r, object, w); err != nil {
		return err
	}
	return object.Update(w)
}
