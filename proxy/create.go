package proxy

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// create is the way of an object that is created.
func (h *handler) create(w *storage.Write) error {
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
	if err := h.admission.keepOwned(s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := h.admission.Complete(w); err != nil { // from the URL, and without unknown fields
		return err
	}
	h.trail.events.NoteRequest(w.Object)
	if err := s.PrepareForCreate(w); err != nil { // no status, no system metadata of the client's
		return err
	}
	if err := h.admission.setDefaults(s, w); err != nil {
		return err
	}
	if err := h.admit(s, w); err != nil {
		return err
	}
	return s.Create(w)
}

// writeOfNothing is the way of a request that may have no body, and has none, and of a body that is not read. Policies see
// that there is no object.
func (h *handler) writeOfNothing(w *storage.Write) error {
	if h.scope.storage.NeedsExisting(w) && h.scope.rules.policies.Concerns(&w.Info, admission.Update) {
		if err := h.scope.storage.Get(w); err != nil {
			return err
		}
	}
	if wrong := h.admission.parameters; len(wrong) > 0 {
		return h.request.Invalid(w.Info.Name, wrong, 0)
	}
	if err := h.admission.Validate(w); err != nil {
		return err
	}
	return h.scope.storage.Pass(w)
}

// admit leads an object that is complete through the policies that change it, its schema, and the policies
// that validate it.
func (h *handler) admit(s storage.Storage, w *storage.Write) error {
	if spans := h.trail.spans; spans != nil {
		spans.BeginAdmission()
		defer spans.EndAdmission()
	}
	if err := h.admission.mutate(s, w); err != nil {
		return err
	}
	at(h.trail.story, explaining.Metadata, w)
	s.SetMetadata(w)
	if err := h.admission.validateObject(s, w); err != nil { // schema, rules and conventions: all failures at once
		return err
	}
	s.Warn(w)
	if err := s.Preview(w); err != nil {
		return err
	}
	return h.admission.Validate(w) // policies: all denials at once
}
