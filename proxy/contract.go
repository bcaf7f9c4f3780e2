package proxy

import (
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/proxy/explaining"
	"github.com/admission-gateway/gateway/proxy/responses"
)

// checkContract compares the request with what an OpenAPI document says of it beside its body. What is wrong with the
// parameters of a request with an object is named with everything that is wrong with the object.
func (h *handler) checkContract() error {
	at(h.trail.story, explaining.Contract, nil)
	i, head, o := &h.request.Info, &h.incoming.Head, h.scope.operation
	if o == nil {
		return nil
	}
	if ok, challenge := o.Authenticates(i, head); !ok {
		h.who.challenge = challenge
		return status.Unauthorized("the request must have the credentials that the API's document asks for")
	}
	failures := o.Check(i, head, h.admission.frame)
	h.admission.noteWrong(failures)
	switch {
	case len(failures) == 0:
		return nil
	case h.scope.isOpaque(h.request) || h.scope.scaler != nil:
		return h.request.Invalid(i.Name, failures, 0)
	}
	h.admission.parameters = failures
	return nil
}

// watchAnswers lets answers to the request be checked against what its document declares.
func (h *handler) watchAnswers() error {
	r := h.request
	name := r.Info.Resource
	if r.Info.Documented != nil {
		name = r.Info.Template
	}
	if r.Info.Subresource != "" {
		name += "/" + r.Info.Subresource
	}
	kind, set, described, about := h.route.backend.kind, h.set, r.Resource, r.Info
	h.trail.answers = h.gateway.observers.answers.Watch(responses.Subject{
		Upstream: h.route.backend.name, Resource: name, Verb: r.Info.Verb, Method: string(r.Head.Method),
	}, r.Limits, func(verb resource.Verb) *contract.Operation {
		about.Verb = verb
		return kind.operation(set, described, &about)
	})
	r.Exchanges.Watcher = h.trail.answers
	return nil
}
