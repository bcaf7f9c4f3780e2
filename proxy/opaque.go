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
func pass(r *request, w *storage.Write) error {
	switch {
	case r.body.language != inUnread:
		if err := decodeBody(r, w); err != nil {
			return err
		}
	case r.trail.story != nil || r.trail.events.Wants(audit.Metadata):
		w.Object, w.Source = lookAtBody(r), r.Body
	default:
		w.Source = r.Body
	}
	if s := r.trail.story; s != nil {
		describe(r, w)
		s.At(explaining.Pass, w)
	}
	if w.Object != nil && sendsObject(&w.Info) {
		r.trail.events.NoteRequest(w.Object)
	}
	if w.Object != nil {
		var err error
		if w.Info.Verb == resource.VerbPatch {
			err = checkPatch(r, w, w.Object.Root())
		} else {
			err = checkBody(r, w, w.Object.Root(), r.body.declared)
		}
		if err != nil {
			return err
		}
	}
	return r.scope.storage.Pass(w)
}

// admitUnread is the way of an object in protobuf that a later version of Kubernetes has made. The backend shows what it would
// store; that is admitted, and the client's own bytes are sent on.
func admitUnread(r *request, w *storage.Write) error {
	w.Source = r.Body
	backend := r.scope.storage.Shower()
	if backend == nil || changes(r, w) {
		return unreadable(r, "be JSON, for policies may change the object")
	}
	if w.Info.Verb == resource.VerbUpdate { // which nothing pins but what the client wrote
		version, uid := protobuf.Identity(w.Source)
		switch {
		case version == "":
			return unreadable(r, "name the `metadata.resourceVersion` that it replaces, or be JSON")
		case uid == "" && storage.NamesObject(&w.Info, r.Resource) && r.scope.rules.policies.Concerns(&w.Info, admission.Create):
			// A server ignores the version of an object that is gone by then, and creates it.
			return unreadable(r, "name the `metadata.uid` of the object that it replaces, or be JSON")
		}
	}
	if err := r.scope.storage.CheckOptions(w); err != nil {
		return err
	}
	isShown, err := backend.Show(w)
	switch {
	case err != nil:
		return err
	case !isShown:
		return unreadable(r, "be JSON, for the backend cannot show what it makes of it")
	}
	r.trail.events.NoteRequest(w.Object)
	if err := validateObject(r, r.scope.storage, w); err != nil {
		return err
	}
	if err := validate(r, w); err != nil {
		return err
	}
	if w.Object.Edited() {
		return unreadable(r, "be JSON, for the object has to be pinned to the version that was judged")
	}
	if w.Info.Verb == resource.VerbCreate {
		return r.scope.storage.Create(w)
	}
	return r.scope.storage.Update(w)
}

// changes reports whether policies may change the object of the write.
func changes(r *request, w *storage.Write) bool {
	operation, _ := operationOf(w)
	chain := r.scope.rules.policies
	return chain.Mutates(&w.Info, operation) || chain.Mutates(&w.Info, admission.Create)
}

// unreadable returns the refusal of a body that is beyond the gateway, with what the client can do.
func unreadable(r *request, must string) error {
	var refusal *status.Error
	if errors.As(r.body.beyond, &refusal) && refusal.ErrStatus.Code != http.StatusBadRequest {
		return refusal // which says what the body may be
	}
	return status.BadRequest("%s. Policies or schemas are about the object: the body must %s, or the gateway must be upgraded to the client's version of Kubernetes",
		r.body.beyond, must)
}
