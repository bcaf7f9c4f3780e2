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
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/story"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// explainHeader asks for an explanation in place of the request. It never reaches a backend: its
// sender gets an explanation or a refusal, on every path.
const explainHeader = "X-Admission-Explain"

// beginStory lets the request be explained, and go no further, if the client may ask for that. Nothing
// is sent to the backend then but the gateway's own questions.
func beginStory(h *handler) error {
	form := story.JSON
	for _, l := range h.incoming.Head.Headers() {
		if l.Field != message.FieldXAdmissionExplain {
			continue
		}
		switch f := story.Form(l.Value); f {
		case "1":
		case story.JSON, story.Text, story.HTML:
			form = f
		default:
			return status.BadRequest("the header '%s' must be '1', 'json', 'text' or 'html'", explainHeader)
		}
	}
	user, may := &h.who.user, h.gateway.observers.explanations
	if !may.Allows(user.Name, user.Groups) {
		return status.Coded(http.StatusForbidden, "the configuration does not let the client ask for explanations by the header '"+explainHeader+"'")
	}
	i := &h.request.Info
	s := explaining.New(story.Request{
		Method: string(h.incoming.Head.Method), Path: string(h.trail.target), User: strings.Clone(user.Name), Groups: slices.Clone(user.Groups),
		Route: h.route.place.Route, Upstream: h.route.backend.name, Policies: h.set.Hash(),
	}, may.Values == config.ShowValues)
	s.About(i, h.request.Resource != nil, names(h.scope.stages), secretsIn(h.set))
	h.trail.story, h.trail.form = s, form
	h.request.Exchanges.Sink = s
	h.request.From.Stripped |= message.Fields(message.FieldXAdmissionExplain)
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
func (h *handler) explainLimits() error {
	l, s := h.limits, h.trail.story
	s.At(explaining.Limits, nil)
	var err error
	if h.scope.limits != nil {
		err = l.enforce()
	}
	counted := map[string]bool{}
	for i := range l.charges.All() {
		counted[l.charges.All()[i].Rule.Name] = true
	}
	for _, o := range h.set.Limits().Outlooks(&h.request.Info, &h.route.place, l.gateway.timeOf(h.request)) {
		one := story.Limit{Name: o.Name, Counts: counted[o.Name], Refuses: err != nil && l.refusedBy == o.Name}
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
func tellStory(h *handler, err error) {
	r, s := &h.request.Response, h.trail.story
	a := story.Answer{Decision: story.Answered, Warnings: slices.Clone(h.request.Warnings)}
	switch {
	case errors.Is(err, storage.ErrUnseen):
		a.Decision = story.Undecided
		s.Unknown("what becomes of it: it depends on the stored object, which the client may not get and is not shown. " +
			"Of a request that is not only explained the gateway's own account reads it")
	case err != nil && !errors.Is(err, storage.ErrNotSent):
		e := statusOf(err)
		s.Refuse(e.ErrStatus.Message)
		a.Decision = story.Refused
		var body []byte
		if a.Code, _, body = formOf(h, e); json.Valid(body) {
			a.Status = body
		} else {
			a.Status = status.AppendJSON(nil, &e.ErrStatus)
		}
	case s.Sends():
		a.Decision = story.Admitted
		s.Unknown("what the backend answers: it decides by itself")
	default:
		if a.Code = r.Status(); a.Code >= http.StatusBadRequest && !r.IsStream() && json.Valid(r.Body()) {
			a.Decision, a.Status = story.Refused, slices.Clone(r.Body())
		}
	}
	if r.IsStream() {
		r.Close()
	}
	explained := s.Finish(context.Background(), h.set.Admission(), a)
	explained.SetOrigins(h.set.OriginOf)
	h.request.Warnings = h.request.Warnings[:0]
	contentType, body := story.Write(explained, h.trail.form)
	r.StartBody(http.StatusOK, contentType, body)
	r.Add("Cache-Control", notCached)
	r.Add("X-Content-Type-Options", "nosniff") // there are values of clients in it
}
