package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// create is the way of an object that is created.
func create(r *request, w *storage.Write) error {
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
	if err := keepOwned(r, s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := complete(r, w); err != nil { // from the URL, and without unknown fields
		return err
	}
	r.trail.events.NoteRequest(w.Object)
	if err := s.PrepareForCreate(w); err != nil { // no status, no system metadata of the client's
		return err
	}
	if err := setDefaults(r, s, w); err != nil {
		return err
	}
	if err := admit(r, s, w); err != nil {
		return err
	}
	return s.Create(w)
}

// writeOfNothing is the way of a request that may have no body, and has none, and of a body that is not read. Policies see
// that there is no object.
func writeOfNothing(r *request, w *storage.Write) error {
	if r.scope.storage.NeedsExisting(w) && r.scope.rules.policies.Concerns(&w.Info, admission.Update) {
		if err := r.scope.storage.Get(w); err != nil {
			return err
		}
	}
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(w.Info.Name, wrong, 0)
	}
	if err := validate(r, w); err != nil {
		return err
	}
	return r.scope.storage.Pass(w)
}

// admit leads an object that is complete through the policies that change it, its schema, and the policies
// that validate it.
func admit(r *request, s storage.Storage, w *storage.Write) error {
	if spans := r.trail.spans; spans != nil {
		spans.BeginAdmission()
		defer spans.EndAdmission()
	}
	if err := mutate(r, s, w); err != nil {
		return err
	}
	at(r.trail.story, explaining.Metadata, w)
	s.SetMetadata(w)
	if err := validateObject(r, s, w); err != nil { // schema, rules and conventions: all failures at once
		return err
	}
	s.Warn(w)
	if err := s.Preview(w); err != nil {
		return err
	}
	return validate(r, w) // policies: all denials at once
}
