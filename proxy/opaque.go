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
func pass(r *request, a attempt) error {
	switch {
	case r.body.language != inUnread:
		if err := decodeBody(r, a); err != nil {
			return err
		}
	case r.telemetry.explanation != nil || r.telemetry.events.Wants(audit.Metadata):
		a.Object, a.Source = lookAtBody(r), r.Body
	default:
		a.Source = r.Body
	}
	if s := r.telemetry.explanation; s != nil {
		describe(r, a)
		s.At(explaining.Pass, a.Write)
	}
	if a.Object != nil && sendsObject(&a.Info) {
		r.telemetry.events.NoteRequest(a.Object)
	}
	if a.Object != nil {
		var err error
		if a.Info.Verb == resource.VerbPatch {
			err = checkPatch(r, a, a.Object.Root())
		} else {
			err = checkBody(r, a, a.Object.Root(), r.body.declared)
		}
		if err != nil {
			return err
		}
	}
	return r.scope.storage.Pass(a.Write)
}

// admitUnread is the way of an object in protobuf that a later version of Kubernetes has made. The backend shows what
// it would store; that is admitted, and the client's own bytes are sent on.
func admitUnread(r *request, a attempt) error {
	a.Source = r.Body
	backend := r.scope.storage.Shower()
	if backend == nil || changes(r, a) {
		return unreadable(r, "be JSON, for policies may change the object")
	}
	if a.Info.Verb == resource.VerbUpdate { // which nothing pins but what the client wrote
		version, uid := protobuf.Identity(a.Source)
		switch {
		case version == "":
			return unreadable(r, "name the `metadata.resourceVersion` that it replaces, or be JSON")
		case uid == "" && storage.NamesObject(&a.Info, r.Resource) &&
			r.scope.rules.policies.Concerns(&a.Info, admission.Create):
			// A server ignores the version of an object that is gone by then, and creates it.
			return unreadable(r, "name the `metadata.uid` of the object that it replaces, or be JSON")
		}
	}
	if err := r.scope.storage.CheckOptions(a.Write); err != nil {
		return err
	}
	isShown, err := backend.Show(a.Write)
	switch {
	case err != nil:
		return err
	case !isShown:
		return unreadable(r, "be JSON, for the backend cannot show what it makes of it")
	}
	r.telemetry.events.NoteRequest(a.Object)
	if err := validateObject(r, a, r.scope.storage); err != nil {
		return err
	}
	if err := validate(r, a); err != nil {
		return err
	}
	if a.Object.Edited() {
		return unreadable(r, "be JSON, for the object has to be pinned to the version that was judged")
	}
	if a.Info.Verb == resource.VerbCreate {
		return r.scope.storage.Create(a.Write)
	}
	return r.scope.storage.Update(a.Write)
}

// changes reports whether policies may change the object of the write.
func changes(r *request, a attempt) bool {
	operation, _ := operationOf(a.Write)
	chain := r.scope.rules.policies
	return chain.Mutates(&a.Info, operation) || chain.Mutates(&a.Info, admission.Create)
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
