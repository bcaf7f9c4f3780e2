package proxy

import "github.com/admission-gateway/gateway/internal/resource"

// scale is the way of a Scale, which asks for another number of replicas. It is admitted by the
// policies that match the subresource, and then, as an update of the object that it stands for, by
// the policies that match the object.
func scale(r *request, a attempt) error {
	s, scaler := r.scope.storage, r.scope.scaler
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	decode := decodeBody
	if a.Info.Verb == resource.VerbPatch {
		decode = decodePatch
	}
	if err := decode(r, a); err != nil {
		return err
	}
	if err := s.Get(a.Write); err != nil {
		return err
	}
	asked := a.of(r.asked)
	asked.Begin(r.Request)
	if err := scaler.ReadScale(a.Write, asked.Write); err != nil {
		return err
	}
	if err := mutate(r, asked, s); err != nil {
		return err
	}
	if err := validate(r, asked); err != nil {
		return err
	}
	a.forget()
	if err := scaler.ApplyScale(a.Write, asked.Write); err != nil {
		return err
	}
	object := scaler.Object()
	if err := admit(r, a, object); err != nil {
		return err
	}
	return object.Update(a.Write)
}
