package proxy

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/refusal"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// onlyReads is the Allow header of resources that may only be read.
const onlyReads = "GET, HEAD, OPTIONS"

// methodsOf returns the methods that the request's path takes, without one that was refused.
func methodsOf(r *request, refused string) string {
	route, target := r.route, r.incoming.Head.Target
	if route == nil { // the head was refused before anything was known of the path
		if route, target = routeOf(r); route == nil {
			return "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
		}
	}
	resolver := r.gateway.scopesOf(r.set).resolver(route)
	if info, _, _ := resolver.Resolve("GET", pathOf(target)); info.IsUndescribed && !info.IsOtherMethod &&
		info.Documented == nil {
		switch route.undescribed {
		case config.DenyUndescribed:
			return ""
		case config.DenyWrites:
			return onlyReads
		}
	}
	return resource.Allowed(resolver, pathOf(target), refused,
		func(i *resource.Info, described *resource.Resource) bool {
			isClosed := route.undescribed != config.PassUndescribed && mayWrite(i) ||
				route.undescribed == config.DenyUndescribed || described != nil && mayWrite(i) &&
				r.set.Judges(described)
			return !i.IsOtherMethod || !isClosed
		})
}

// routeOf returns the route of a request whose head was refused, and its target as the backend would get it; nil if the
// head does not say as much.
func routeOf(r *request) (to *route, target []byte) {
	head := &r.incoming.Head
	if target = head.Target; len(target) == 0 || target[0] != '/' {
		return nil, nil
	}
	choice := r.gateway.routes.find(listenerOf(r), head)
	if choice == nil {
		return nil, target
	}
	if to = choice.routes[0]; to.rules == nil {
		return to, target
	}
	target, err := to.rules.AppendTarget(nil, target)
	if err != nil {
		return nil, nil
	}
	return to, target
}

// refuse writes an error as a Status, or in the form that is asked for. All errors of the gateway itself are written
// here.
func refuse(r *request, err error) {
	answer := &r.Response
	if to, is := errors.AsType[*redirection](err); is {
		to.write(answer)
		showNames(r, answer)
		return
	}
	e := statusOf(err)
	noteRefusal(r, e)
	if r.incoming.Refusal != nil {
		r.telemetry.nameNew() // no more of its head is used
	}
	if r.incoming.Head.IsGRPC() {
		writeGRPC(answer, e)
		r.telemetry.refused = int(e.ErrStatus.Code)
	} else {
		code, contentType, body := formOf(r, e)
		if r.route == nil && code == http.StatusNotFound && string(r.incoming.Head.Method) == http.MethodHead {
			contentType = "" // of a body that no client gets, and some read what has this type
		}
		writeRefusal(answer, e, code, contentType, body)
	}
	showTransport(r, answer)
	showNames(r, answer)
	addWarnings(r)
	var answered *storage.BackendError
	if errors.As(err, &answered) {
		answered.SetHeaders(&answer.Response)
	}
	if r.who.challenge != "" {
		answer.Add("WWW-Authenticate", r.who.challenge)
	}
	if e.ErrStatus.Code == http.StatusUnsupportedMediaType && r.scope != nil {
		showAccepted(r)
	}
	if e.ErrStatus.Code == http.StatusMethodNotAllowed {
		allowed := methodsOf(r, str(r.incoming.Head.Method))
		if i := &r.Info; i.IsUndescribed && !i.IsOtherMethod {
			allowed = onlyReads // the gateway refuses the method of no other undescribed request
		}
		answer.Add("Allow", allowed)
	}
	showLimits(r)
}

// showAccepted says in an answer 415 what the request's body may be (RFC 5789, 2.2; RFC 7694, 3).
func showAccepted(r *request) {
	answer := &r.Response
	if r.incoming.Head.Has(message.FieldContentEncoding) {
		answer.Add("Accept-Encoding", cmp.Or(r.scope.storage.MediaTypes().Encodings, "identity"))
	}
	if i := &r.Info; i.Verb == resource.VerbPatch {
		answer.Add("Accept-Patch", acceptedPatches(r, r.scope.operation))
	}
}

// noteRefusal keeps what the gateway refused the request for.
func noteRefusal(r *request, e *status.Error) {
	r.telemetry.events.NoteStatus(&e.ErrStatus)
	o := &r.telemetry.record.Outcome
	o.Reason = string(e.ErrStatus.Reason)
	o.Decision = telemetry.Decision{Policy: r.limits.refusedBy}
	if d := e.ErrStatus.Details; d != nil && len(d.Causes) > 0 {
		o.Field = d.Causes[0].Field
	}
	if denials := r.attempt.report.Denials(); len(denials) > 0 && r.permission.refusal == nil {
		d := &denials[0]
		o.Decision = telemetry.Decision{Policy: d.Policy, Binding: d.Binding, Field: d.Cause.Field}
	}
}

// formOf writes a refusal in the format that a file says of the resource, or else the configuration of the route: as a
// Status, as problem details, or by a template. A client that accepts problem details, and not the media type of the
// template, gets them in any case. A template that fails leaves the Status.
func formOf(r *request, e *status.Error) (code int, contentType string, body []byte) {
	var format config.ErrorFormat
	var name string
	route := r.route
	if route == nil { // the head was refused before anything was known of the path
		route, _ = routeOf(r)
	}
	if route != nil {
		format, name = route.formatOf(r.Resource)
	}
	template := r.set.ErrorTemplate(name)
	if r.gateway.refusesPlainly {
		format, template = config.StatusErrors, nil
	}
	asked := r.incoming.Refusal == nil && r.incoming.Head.Has(message.FieldAccept) &&
		r.incoming.Head.Accepts(false, status.ProblemType)
	if template != nil && !(asked && !r.incoming.Head.Accepts(true, template.MediaType())) {
		if code, body, ok := fill(r, template, e); ok {
			return code, template.MediaType(), body
		}
		return int(e.ErrStatus.Code), storage.JSON, status.AppendJSON(nil, &e.ErrStatus)
	}
	if asked || format == config.ProblemErrors {
		return int(e.ErrStatus.Code), status.ProblemType, status.AppendProblem(nil, &e.ErrStatus)
	}
	return int(e.ErrStatus.Code), storage.JSON, status.AppendJSON(nil, &e.ErrStatus)
}

// fill writes a refusal by a template; false: the template failed, which is counted and logged.
func fill(r *request, t *refusal.Template, e *status.Error) (code int, body []byte, ok bool) {
	filled := refusal.Refusal{
		Status: &e.ErrStatus, Parameters: r.wrong, RequestID: r.telemetry.record.ID,
		Method: str(r.incoming.Head.Method), Path: str(pathOf(r.telemetry.target)),
	}
	code, body, err := t.Write(&filled)
	if err == nil {
		return code, body, true
	}
	r.gateway.metrics.ErrorTemplateFailed(t.Name())
	if times, tell := r.gateway.often.failures.Allow("template "+t.Name(), time.Now()); tell {
		r.gateway.log.Warn("an ErrorTemplate failed, and the refusal is a Status", "template", t.Name(), "cause",
			err.Error(), "times", times)
	}
	return 0, nil, false
}

// notCached is how kube-apiserver marks every answer: who asks decides about it.
const notCached = "no-cache, private"

// writeStatus makes a Status the answer. No cache in between keeps it, not even of the codes that may be kept if
// nothing else is said: 404, 405, 410 and 414.
func writeStatus(r *storage.Response, e *status.Error) {
	writeRefusal(r, e, int(e.ErrStatus.Code), storage.JSON, status.AppendJSON(nil, &e.ErrStatus))
}

func writeRefusal(r *storage.Response, e *status.Error, code int, contentType string, body []byte) {
	s := &e.ErrStatus
	r.StartBody(code, contentType, body)
	r.Add("Cache-Control", notCached)
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		r.Add("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
}

// answerPanic answers a request whose stages panicked with a 500 that shows nothing.
func answerPanic(m *message.Response) {
	var r storage.Response
	writeStatus(&r, status.From(errPanic))
	*m = r.Response
}

// errPanic is no Status on purpose.
var errPanic = errors.New("panic")

// statusOf gives any error of the way its Status.
func statusOf(err error) *status.Error {
	if errors.Is(err, presence.ErrLeft) {
		return status.ClientLeft()
	}
	if unknown, is := errors.AsType[*storage.UnknownOutcome](err); is {
		return status.From(unknown)
	}
	if failed, is := errors.AsType[*upstream.Error](err); is {
		return failed.Status()
	}
	if bad, is := errors.AsType[*message.Error](err); is {
		return status.Coded(bad.Code, bad.Message)
	}
	return status.From(err)
}
