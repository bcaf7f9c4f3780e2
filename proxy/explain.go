package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// explainHeader asks for an explanation in place of the request. It never reaches a backend: its
// sender gets an explanation or a refusal, on every path.
const explainHeader = "X-Admission-Explain"

// beginStory lets the request be explained, and go no further, if the client may ask for that. Nothing
// is sent to the backend then but the gateway's own questions.
func beginStory(r *request) error {
	form := explanation.JSON
	for _, l := range r.incoming.Head.Headers() {
		if l.Field != message.FieldXAdmissionExplain {
			continue
		}
		switch f := explanation.Form(l.Value); f {
		case "1":
		case explanation.JSON, explanation.Text, explanation.HTML:
			form = f
		default:
			return status.BadRequest("the header '%s' must be '1', 'json', 'text' or 'html'", explainHeader)
		}
	}
	user, may := &r.who.user, r.gateway.observers.explanations
	if !may.Allows(user.Name, user.Groups) {
		return status.Coded(http.StatusForbidden,
			"the configuration does not let the client ask for explanations by the header '"+explainHeader+"'")
	}
	i := &r.Info
	s := explaining.New(explanation.Request{
		Method: string(r.incoming.Head.Method), Path: string(r.telemetry.target), User: strings.Clone(user.Name),
		Groups: slices.Clone(user.Groups),
		Route:  r.route.place.Route, Upstream: r.route.backend.name, Policies: r.set.Hash(),
	}, may.Values == config.ShowValues)
	s.About(i, r.Resource != nil, names(r.scope.stages), secretsIn(r.set))
	r.telemetry.explanation, r.telemetry.form = s, form
	r.Exchanges.Sink = s
	r.From.Stripped |= message.Fields(message.FieldXAdmissionExplain)
	return nil
}

// secretsIn returns what policies read that may be Secrets.
func secretsIn(set *policies.Set) (secret explaining.Secrets) {
	for _, s := range set.States() {
		isPath := strings.Contains(strings.TrimSuffix(s.Path, "/")+"/", "/secrets/")
		secret.Collections = secret.Collections || s.Kind.Kind == "Secret" || isPath
	}
	set.Admission().Each(func(p admission.Policy, _ bool) {
		secret.Parameters = secret.Parameters || explaining.HasSecretParams(p)
	})
	return secret
}

// explainLimits is enforceLimits for a client that asks for an explanation.
func explainLimits(r *request) error {
	s := r.telemetry.explanation
	s.At(explaining.Limits, nil)
	var err error
	if r.scope.limits != nil {
		err = enforceLimits(r)
	}
	counted := map[string]bool{}
	for i := range r.limits.charges.All() {
		counted[r.limits.charges.All()[i].Rule.Name] = true
	}
	for _, o := range r.set.Limits().Applicabilities(&r.Info, &r.route.place, r.gateway.timeOf(r.Request)) {
		one := explanation.Limit{Name: o.Name, Counts: counted[o.Name], Refuses: err != nil &&
			r.limits.refusedBy == o.Name}
		if !one.Counts {
			one.Because = o.Because
			if o.Applies != resource.Never {
				one.Because = "its conditions do not hold, or the client is exempt"
			}
		}
		s.Limit(one)
	}
	return err
}

// tellStory makes the explanation of the request its answer. err is how the request ended.
func tellStory(r *request, err error) {
	answer, s := &r.Response, r.telemetry.explanation
	a := explanation.Response{Decision: explanation.Answered, Warnings: slices.Clone(r.Warnings)}
	switch {
	case errors.Is(err, storage.ErrUnseen):
		a.Decision = explanation.Undecided
		s.Unknown("what becomes of it: it depends on the stored object, which the client may not get and is not shown. " +
			"Of a request that is not only explained the gateway's own account reads it")
	case err != nil && !errors.Is(err, storage.ErrNotSent):
		e := statusOf(err)
		s.Refuse(e.ErrStatus.Message)
		a.Decision = explanation.Refused
		var body []byte
		if a.Code, _, body = formOf(r, e); json.Valid(body) {
			a.Status = body
		} else {
			a.Status = status.AppendJSON(nil, &e.ErrStatus)
		}
	case s.Sends():
		a.Decision = explanation.Admitted
		s.Unknown("what the backend answers: it decides by itself")
	default:
		if a.Code = answer.Status(); a.Code >= http.StatusBadRequest && !answer.IsStream() &&
			json.Valid(answer.Body()) {
			a.Decision, a.Status = explanation.Refused, slices.Clone(answer.Body())
		}
	}
	if answer.IsStream() {
		answer.Close()
	}
	explained := s.Finish(context.Background(), r.set.Admission(), a)
	explained.SetOrigins(r.set.OriginOf)
	r.Warnings = r.Warnings[:0]
	contentType, body := explanation.Write(explained, r.telemetry.form)
	answer.StartBody(http.StatusOK, contentType, body)
	answer.Add("Cache-Control", notCached)
	answer.Add("X-Content-Type-Options", "nosniff") // there are values of clients in it
}
