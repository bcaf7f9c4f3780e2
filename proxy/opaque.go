package proxy

import (
	"errors"
	"net/http"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/protobuf"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// pass sends on a body that no rule reads: as it came, or, if the backend could read it
// differently, after it was read strictly.
func (h *handler) pass(w *storage.Write) error {
	switch {
	case h.body.language != inUnread:
		if err := h.body.decode(w); err != nil {
			return err
		}
	case h.trail.story != nil || h.trail.events.Wants(audit.Metadata):
		w.Object, w.Source = h.body.look(), h.request.Body
	default:
		w.Source = h.request.Body
	}
	if s := h.trail.story; s != nil {
		h.admission.describe(w)
		s.At(explaining.Pass, w)
	}
	if w.Object != nil && sendsObject(&w.Info) {
		h.trail.events.NoteRequest(w.Object)
	}
	if w.Object != nil {
		var err error
		if w.Info.Verb == resource.VerbPatch {
			err = h.checkPatch(w, w.Object.Root())
		} else {
			err = h.admission.checkBody(w, w.Object.Root(), h.body.declared)
		}
		if err != nil {
			return err
		}
	}
	return h.scope.storage.Pass(w)
}

// admitUnread is the way of an object in protobuf that a later version of Kubernetes has made. The backend shows what it would
// store; that is admitted, and the client's own bytes are sent on.
func (h *handler) admitUnread(w *storage.Write) error {
	w.Source = h.request.Body
	backend := h.scope.storage.Shower()
	if backend == nil || h.changes(w) {
		return h.unreadable("be JSON, for policies may change the object")
	}
	if w.Info.Verb == resource.VerbUpdate { // which nothing pins but what the client wrote
		version, uid := protobuf.Identity(w.Source)
		switch {
		case version == "":
			return h.unreadable("name the `metadata.resourceVersion` that it replaces, or be JSON")
		case uid == "" && storage.NamesObject(&w.Info, h.request.Resource) && h.scope.rules.policies.Concerns(&w.Info, admission.Create):
			// A server ignores the version of an object that is gone by then, and creates it.
			return h.unreadable("name the `metadata.uid` of the object that it replaces, or be JSON")
		}
	}
	if err := h.scope.storage.CheckOptions(w); err != nil {
		return err
	}
	isShown, err := backend.Show(w)
	switch {
	case err != nil:
		return err
	case !isShown:
		return h.unreadable("be JSON, for the backend cannot show what it makes of it")
	}
	h.trail.events.NoteRequest(w.Object)
	if err := h.admission.validateObject(h.scope.storage, w); err != nil {
		return err
	}
	if err := h.admission.Validate(w); err != nil {
		return err
	}
	if w.Object.Edited() {
		return h.unreadable("be JSON, for the object has to be pinned to the version that was judged")
	}
	if w.Info.Verb == resource.VerbCreate {
		return h.scope.storage.Create(w)
	}
	return h.scope.storage.Update(w)
}

// changes reports whether policies may change the object of the write.
func (h *handler) changes(w *storage.Write) bool {
	operation, _ := operationOf(w)
	chain := h.scope.rules.policies
	return chain.Mutates(&w.Info, operation) || chain.Mutates(&w.Info, admission.Create)
}

// unreadable returns the refusal of a body that is beyond the gateway, with what the client can do.
func (h *handler) unreadable(must string) error {
	var refusal *status.Error
	if errors.As(h.body.beyond, &refusal) && refusal.ErrStatus.Code != http.StatusBadRequest {
		return refusal // which says what the body may be
	}
	return status.BadRequest("%s. Policies or schemas are about the object: the body must %s, or the gateway must be upgraded to the client's version of Kubernetes",
		h.body.beyond, must)
}
