package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// A tried description is one whose rollout does not enforce it for a request: the request passes as if no file described its
// path, and the result that it would have had is counted. It implements admission.Terms, by which it is reported as policies are.
type tried struct{ plan *rollout.Plan }

// Stand implements admission.Terms.
func (tried) Stand(context.Context, *admission.Attributes) admission.Standing {
	return admission.Standing{IsTried: true}
}

// NeedsOld implements admission.Terms.
func (tried) NeedsOld() bool { return false }

// Tried implements admission.Terms.
func (t tried) Tried(would bool) { t.plan.Count().Add(would) }

// Outlook implements admission.Terms.
func (tried) Outlook(_ *admission.Attributes, o resource.Outlook) resource.Outlook { return o }

// planOf returns how far the description of a request is in force; nil: for all requests.
func planOf(i *resource.Info, r *resource.Resource) *rollout.Plan {
	switch {
	case i.Documented != nil:
		return i.Documented.Rollout
	case r != nil:
		return r.Rollout
	}
	return nil
}

// operationOfPlan returns the method and the template by which a request is counted.
func operationOfPlan(i *resource.Info, r *resource.Resource) (method, template string) {
	switch {
	case i.Documented != nil:
		return i.Documented.Method, i.Documented.Template
	case r == nil:
		return i.Verb.Method(), ""
	case r.Operation != nil:
		method = r.Operation.Method
	case i.IsOtherMethod:
		method = "other methods"
	default:
		method = i.Verb.Method()
	}
	if template = templateOf(r, i); template == "" && len(r.Paths) > 0 {
		template = r.Paths[0]
	}
	return method, r.RouteOf(template)
}

// enforces reports whether the description of the resource is in force for the request.
func (h *handler) enforces(plan *rollout.Plan) bool {
	i := &h.request.Info
	q := rollout.Request{At: h.gateway.timeOf(h.request), Namespace: i.Namespace}
	switch {
	case i.Name != "":
		q.Subject = []string{i.Group, i.Resource, i.Namespace, i.Name}
	case h.who.user.Name != "" && h.who.user.Name != h.gateway.anonymous.Name:
		q.Subject = []string{h.who.user.Name}
	default:
		q.Subject = []string{h.who.client.String()}
	}
	return plan.Enforces(&q)
}

// try is the stage of a description that may only be tried. It judges the request as the stages behind it would, on a copy, and
// passes it as it came.
func (h *handler) try() error {
	plan := h.scope.plan
	if h.enforces(plan) {
		return nil
	}
	if s := h.trail.story; s != nil {
		s.Unknown("that the request is not held to its description, by the rollout of '" + plan.Policy() + "': it passes as it came, and what is said here is only counted")
		return nil
	}
	if err := h.unmarkRevision(); err != nil {
		return err
	}
	head := &h.incoming.Head
	switch {
	case !head.HasBody() || h.incoming.HasArrived() || head.ContentLength >= 0 && head.ContentLength <= h.request.Limits.Body:
		if head.HasBody() {
			if err := h.body.readOpaque(); err != nil {
				return err
			}
		}
		h.noteTrial(plan, h.rehearse())
	case head.ContentLength > 0:
		h.noteTrial(plan, status.RequestEntityTooLarge("the body must be at most %d bytes", h.request.Limits.Body))
	default: // a stream, which would have to be read to its end before anything is sent
		h.noteTrial(plan, errNotJudged)
	}
	if err := h.forward(head.HasBody() && h.request.Body != nil); err != nil {
		return err
	}
	if h.upgrade.tunnel == nil {
		h.addWarnings()
	}
	return errServed
}

// errNotJudged is the outcome of a request that was not judged.
var errNotJudged = errors.New("the request was not judged")

// unsent takes what is not sent. It implements storage.Sink.
type unsent struct{}

// Take implements storage.Sink.
func (unsent) Take(*storage.Message) {}

// rehearse leads a copy of the request through the stages behind the one that tries it. It sends nothing but the gateway's own
// questions, and returns why the request would be refused.
func (h *handler) rehearse() (err error) {
	g := h.gateway
	s, _ := g.handlers.Get().(*handler)
	if s == nil {
		s = newHandler()
	}
	s.gateway, s.set, s.route, s.scope, s.named = g, h.set, h.route, h.scope, h.named
	s.incoming = g.memory.DryRun(h.incoming, h.request.Body)
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a request that is only tried could not be judged", "cause", p, "stack", string(debug.Stack()))
			err = errNotJudged
		}
		in := s.incoming
		s.who, s.permission = who{}, permission{}
		s.release()
		in.Close()
	}()
	s.request.Started, s.request.Head = h.request.Started, &s.incoming.Head
	s.request.SetSubject(&h.request.Info, h.request.Resource)
	s.request.Memory, s.request.Limits, s.request.From = &s.incoming.Memory, h.request.Limits, h.request.From
	s.request.Sink = unsent{}
	s.who = h.who
	s.trail.target, s.trail.record.ID = h.trail.target, h.trail.record.ID
	s.limits.begin(s)
	s.permission.begin(s)
	s.admission.begin(s)
	s.admission.rehearse()
	s.body.begin(s)
	for _, stage := range h.scope.stages[h.scope.trial+1:] {
		if err := stage.run(s); err != nil {
			return err
		}
	}
	return nil
}

// noteTrial counts what would have become of the request.
func (h *handler) noteTrial(plan *rollout.Plan, err error) {
	operation := h.scope.tried
	refused, isJudged := refusalOf(err)
	m := h.gateway.metrics
	switch report := &h.admission.report; {
	case !isJudged:
		operation.Skip()
		telemetry.ContractTried(m, plan.Policy(), operation.Name, "Unjudged")
		return
	case refused == nil:
		operation.Admit()
		report.NoteTrial(tried{plan}, nil)
		telemetry.ContractTried(m, plan.Policy(), operation.Name, "Admitted")
	default:
		operation.Refuse(reasonOf(refused), h.gateway.timeOf(h.request))
		report.NoteTrial(tried{plan}, &admission.TriedFailure{Message: refused.Message, Policy: plan.Policy()})
		telemetry.ContractTried(m, plan.Policy(), operation.Name, string(refused.Reason))
		if !plan.IsSilent() {
			h.request.Warnings = append(h.request.Warnings, refused.Message+admission.OnceEnforced)
		}
	}
	h.admission.auditTerms()
}

// reasonOf returns what is kept of a refusal, which has no value that the client sent.
func reasonOf(s *metav1.Status) *rollout.Refusal {
	why := &rollout.Refusal{Code: int(s.Code), Reason: string(s.Reason)}
	if d := s.Details; d != nil {
		for _, c := range d.Causes {
			why.Fields = append(why.Fields, c.Field)
		}
	}
	return why
}

// tryUnread makes an undescribed request of one whose method, path or head cannot be read as its description has it, and which
// is only tried. It reports whether it did: the user is not known yet, so that a share is a share of addresses.
func (h *handler) tryUnread(r *resource.Resource, err error) bool {
	plan := planOf(&h.request.Info, r)
	if plan == nil {
		return false
	}
	h.who.client = h.incoming.Peer().Addr
	if h.enforces(plan) {
		return false
	}
	refused, isJudged := refusalOf(err)
	if !isJudged || refused == nil {
		return false
	}
	count := h.gateway.countOf(plan)
	operation := count.Operation(operationOfPlan(&h.request.Info, r))
	operation.Refuse(reasonOf(refused), h.gateway.timeOf(h.request))
	count.Add(true)
	telemetry.ContractTried(h.gateway.metrics, plan.Policy(), operation.Name, string(refused.Reason))
	telemetry.WouldDeny(h.gateway.metrics, plan.Policy())
	if !plan.IsSilent() {
		h.request.Warnings = append(h.request.Warnings, refused.Message+admission.OnceEnforced)
	}
	undescribed := resource.Undescribed(str(h.incoming.Head.Method), h.incoming.Head.Target)
	h.request.SetSubject(&undescribed, nil)
	h.isTriedUnread = true
	return true
}

// refusalOf returns the gateway's own refusal, nil if there is none, and whether the request was judged: a backend that refuses a
// question of the gateway's, or a gateway that has no memory, has not judged the request.
func refusalOf(err error) (refused *metav1.Status, isJudged bool) {
	switch {
	case err == nil, err == errServed, errors.Is(err, storage.ErrNotSent):
		return nil, true
	case errors.Is(err, storage.ErrUnseen), errors.Is(err, storage.ErrAnswered), errors.Is(err, errNotJudged):
		return nil, false
	}
	if _, is := errors.AsType[*upstream.Error](err); is {
		return nil, false
	}
	if _, is := errors.AsType[*storage.BackendError](err); is {
		return nil, false
	}
	refused = &statusOf(err).ErrStatus
	if c := refused.Code; c >= http.StatusInternalServerError || c == http.StatusTooManyRequests {
		return nil, false
	}
	return refused, true
}

// countOf returns the count of a rollout; one that is not shown if the gateway counts nothing.
func (g *Gateway) countOf(p *rollout.Plan) *rollout.Count {
	if g.isUncounted {
		return new(rollout.Count)
	}
	return p.Count()
}
