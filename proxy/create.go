package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// create is the way of an object that is created.
func create(r *request, a attempt) error {
	s := r.scope.storage
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	if err := decodeBody(r, a); err != nil {
		return err
	}
	if a.Object == nil {
		return writeOfNothing(r, a)
	}
	if err := keepOwned(r, a, s); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := complete(r, a); err != nil { // from the URL, and without unknown fields
		return err
	}
	r.telemetry.events.NoteRequest(a.Object)
	if err := s.PrepareForCreate(a.Write); err != nil { // no status, no system metadata of the client's
		return err
	}
	if err := setDefaults(r, a, s); err != nil {
		return err
	}
	if err := admit(r, a, s); err != nil {
		return err
	}
	return s.Create(a.Write)
}

// writeOfNothing is the way of a request that may have no body, and has none, and of a body that is not read. Policies
// see that there is no object.
func writeOfNothing(r *request, a attempt) error {
	if r.scope.storage.NeedsExisting(a.Write) && r.scope.rules.policies.Concerns(&a.Info, admission.Update) {
		if err := r.scope.storage.Get(a.Write); err != nil {
			return err
		}
	}
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(a.Info.Name, wrong, 0)
	}
	if err := validate(r, a); err != nil {
		return err
	}
	return r.scope.storage.Pass(a.Write)
}

// admit leads an object that is complete through the policies that change it, its schema, and the policies
// that validate it.
func admit(r *request, a attempt, s storage.Storage) error {
	if spans := r.telemetry.spans; spans != nil {
		spans.BeginAdmission()
		defer spans.EndAdmission()
	}
	if err := mutate(r, a, s); err != nil {
		return err
	}
	at(r.telemetry.explanation, explaining.Metadata, a.Write)
	s.SetMetadata(a.Write)
	if err := validateObject(r, a, s); err != nil { // schema, rules and conventions: all failures at once
		return err
	}
	s.Warn(a.Write)
	if err := s.Preview(a.Write); err != nil {
		return err
	}
	return validate(r, a) // policies: all denials at once
}
