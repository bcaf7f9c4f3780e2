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
func checkContract(r *request) error {
	at(r.telemetry.explanation, explaining.Contract, nil)
	i, head, o := &r.Info, &r.incoming.Head, r.scope.operation
	if o == nil {
		return nil
	}
	if ok, challenge := o.Authenticates(i, head); !ok {
		r.who.challenge = challenge
		return status.Unauthorized("the request must have the credentials that the API's document asks for")
	}
	failures := o.Check(i, head, r.frame)
	noteWrong(r, failures)
	switch {
	case len(failures) == 0:
		return nil
	case r.scope.isOpaque(r.Request) || r.scope.scaler != nil:
		return r.Invalid(i.Name, failures, 0)
	}
	r.parameters = failures
	return nil
}

// watchAnswers lets answers to the request be checked against what its document declares.
func watchAnswers(r *request) error {
	asked := r.Request
	name := asked.Info.Resource
	if asked.Info.Documented != nil {
		name = asked.Info.Template
	}
	if asked.Info.Subresource != "" {
		name += "/" + asked.Info.Subresource
	}
	kind, set, described, about := r.route.backend.kind, r.set, asked.Resource, asked.Info
	r.telemetry.answers = r.gateway.observers.answers.Watch(responses.Subject{
		Upstream: r.route.backend.name, Resource: name, Verb: asked.Info.Verb, Method: string(asked.Head.Method),
	}, asked.Limits, func(verb resource.Verb) *contract.Operation {
		about.Verb = verb
		return kind.operation(set, described, &about)
	})
	asked.Exchanges.Watcher = r.telemetry.answers
	return nil
}
