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

// shadowTerms are of a description whose rollout does not enforce it for a request: the request passes as if no file
// described its path, and the result that it would have had is counted. It implements admission.Terms, by which it is
// reported as policies are.
type shadowTerms struct{ plan *rollout.Plan }

// Stand implements admission.Terms.
func (shadowTerms) Stand(context.Context, *admission.Attributes) admission.Standing {
	return admission.Standing{IsDryRun: true}
}

// NeedsOld implements admission.Terms.
func (shadowTerms) NeedsOld() bool { return false }

// ReportDryRun implements admission.Terms.
func (t shadowTerms) ReportDryRun(would bool) { t.plan.Count().Add(would) }

// Applicability implements admission.Terms.
func (shadowTerms) Applicability(_ *admission.Attributes, o resource.Applicability) resource.Applicability {
	return o
}

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
func enforces(r *request, plan *rollout.Plan) bool {
	i := &r.Info
	q := rollout.Request{At: r.gateway.timeOf(r.Request), Namespace: i.Namespace}
	switch {
	case i.Name != "":
		q.Subject = []string{i.Group, i.Resource, i.Namespace, i.Name}
	case r.who.user.Name != "" && r.who.user.Name != r.gateway.anonymous.Name:
		q.Subject = []string{r.who.user.Name}
	default:
		q.Subject = []string{r.who.client.String()}
	}
	return plan.Enforces(&q)
}

// shadow is the stage of a description that may only be tried. It judges the request as the stages behind it would, on
// a copy, and passes it as it came.
func shadow(r *request) error {
	plan := r.scope.plan
	if enforces(r, plan) {
		return nil
	}
	if s := r.telemetry.explanation; s != nil {
		s.Unknown("that the request is not held to its description, by the rollout of '" + plan.Policy() +
			"': it passes as it came, and what is said here is only counted")
		return nil
	}
	if err := unmarkRevision(r); err != nil {
		return err
	}
	head := &r.incoming.Head
	switch {
	case !head.HasBody() || r.incoming.HasArrived() || head.ContentLength >= 0 && head.ContentLength <= r.Limits.Body:
		if head.HasBody() {
			if err := readOpaqueBody(r); err != nil {
				return err
			}
		}
		noteShadow(r, plan, runShadow(r))
	case head.ContentLength > 0:
		noteShadow(r, plan, status.RequestEntityTooLarge("the body must be at most %d bytes", r.Limits.Body))
	default: // a stream, which would have to be read to its end before anything is sent
		noteShadow(r, plan, errNotJudged)
	}
	if err := forward(r, head.HasBody() && r.Body != nil); err != nil {
		return err
	}
	if r.upgrade.tunnel == nil {
		addWarnings(r)
	}
	return errServed
}

// errNotJudged is the outcome of a request that was not judged.
var errNotJudged = errors.New("the request was not judged")

// unsent takes what is not sent. It implements storage.Sink.
type unsent struct{}

// Take implements storage.Sink.
func (unsent) Take(*storage.Message) {}

// runShadow leads a copy of the request through the stages behind the one at hand. It sends nothing but the gateway's
// own questions, and returns why the request would be refused.
func runShadow(of *request) (err error) {
	g := of.gateway
	r := g.takeRequest()
	of.copyTo(r, g.memory.DryRun(of.incoming, of.Body))
	r.isShadow, r.Sink = true, unsent{}
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a request that is only tried could not be judged", "cause", p, "stack", string(debug.Stack()))
			err = errNotJudged
		}
		in := r.incoming
		release(r)
		in.Close()
	}()
	beginFindings(r)
	for _, stage := range r.scope.stages[r.scope.shadowStage+1:] {
		if err := stage.run(r); err != nil {
			return err
		}
	}
	return nil
}

// noteShadow counts what would have become of the request.
func noteShadow(r *request, plan *rollout.Plan, err error) {
	operation := r.scope.shadowed
	refused, isJudged := refusalOf(err)
	m := r.gateway.metrics
	switch report := &r.attempt.report; {
	case !isJudged:
		operation.Skip()
		telemetry.ContractTried(m, plan.Policy(), operation.Name, "Unjudged")
		return
	case refused == nil:
		operation.Admit()
		report.NoteDryRun(shadowTerms{plan}, nil)
		telemetry.ContractTried(m, plan.Policy(), operation.Name, "Admitted")
	default:
		operation.Refuse(reasonOf(refused), r.gateway.timeOf(r.Request))
		report.NoteDryRun(shadowTerms{plan}, &admission.DryRunFailure{Message: refused.Message, Policy: plan.Policy()})
		telemetry.ContractTried(m, plan.Policy(), operation.Name, string(refused.Reason))
		if !plan.IsSilent() {
			r.Warnings = append(r.Warnings, refused.Message+admission.OnceEnforced)
		}
	}
	auditTerms(r)
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

// shadowUnreadable makes an undescribed request of one whose method, path or head cannot be read as its description has
// it, and which is only tried. It reports whether it did: the user is not known yet, so that a share is a share of
// addresses.
func shadowUnreadable(r *request, described *resource.Resource, err error) bool {
	plan := planOf(&r.Info, described)
	if plan == nil {
		return false
	}
	r.who.client = r.incoming.Peer().Addr
	if enforces(r, plan) {
		return false
	}
	refused, isJudged := refusalOf(err)
	if !isJudged || refused == nil {
		return false
	}
	count := r.gateway.countOf(plan)
	operation := count.Operation(operationOfPlan(&r.Info, described))
	operation.Refuse(reasonOf(refused), r.gateway.timeOf(r.Request))
	count.Add(true)
	telemetry.ContractTried(r.gateway.metrics, plan.Policy(), operation.Name, string(refused.Reason))
	telemetry.WouldDeny(r.gateway.metrics, plan.Policy())
	if !plan.IsSilent() {
		r.Warnings = append(r.Warnings, refused.Message+admission.OnceEnforced)
	}
	undescribed := resource.Undescribed(str(r.incoming.Head.Method), r.incoming.Head.Target)
	r.SetSubject(&undescribed, nil)
	r.isUnreadable = true
	return true
}

// refusalOf returns the gateway's own refusal, nil if there is none, and whether the request was judged: a backend that
// refuses a question of the gateway's, or a gateway that has no memory, has not judged the request.
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
