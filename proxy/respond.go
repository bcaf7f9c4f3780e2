package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/refusal"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// onlyReads is the Allow header of resources that may only be read.
const onlyReads = "GET, HEAD, OPTIONS"

// methodsOf returns the methods that the request's path takes, without one that was refused.
func methodsOf(h *handler, refused string) string {
	route, target := h.route, h.incoming.Head.Target
	if route == nil { // the head was refused before anything was known of the path
		if route, target = routeOf(h); route == nil {
			return "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
		}
	}
	resolver := h.gateway.scopesOf(h.set).resolver(route)
	if info, _, _ := resolver.Resolve("GET", pathOf(target)); info.IsUndescribed && !info.IsOtherMethod && info.Documented == nil {
		switch route.undescribed {
		case config.DenyUndescribed:
			return ""
		case config.DenyWrites:
			return onlyReads
		}
	}
	return resource.Allowed(resolver, pathOf(target), refused, func(i *resource.Info, r *resource.Resource) bool {
		isClosed := route.undescribed != config.PassUndescribed && mayWrite(i) || route.undescribed == config.DenyUndescribed || r != nil && mayWrite(i) && h.set.Judges(r)
		return !i.IsOtherMethod || !isClosed
	})
}

// routeOf returns the route of a request whose head was refused, and its target as the backend would get it; nil if the head
// does not say as much.
func routeOf(h *handler) (r *route, target []byte) {
	head := &h.incoming.Head
	if target = head.Target; len(target) == 0 || target[0] != '/' {
		return nil, nil
	}
	choice := h.gateway.routes.find(listenerOf(h), head)
	if choice == nil {
		return nil, target
	}
	if r = choice.routes[0]; r.rules == nil {
		return r, target
	}
	target, err := r.rules.AppendTarget(nil, target)
	if err != nil {
		return nil, nil
	}
	return r, target
}

// completeAnswer makes of an error a Status (ERR-1) and adds warnings (ERR-6).
func (h *handler) completeAnswer(i *resource.Info) error {
	r := &h.request.Response
	switch code := r.Status(); {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		h.permission.withholdWarnings()
		if err := h.permission.orAsked(); err != nil {
			return err
		}
	case h.request.KnowsStored() && !h.permission.isHeard(code):
		h.permission.withholdWarnings()
	}
	if r.Status() >= 400 && !h.request.IsHead() && !isNegotiated(r, h.scope.storage.MediaTypes()) &&
		(r.IsStream() || !r.IsJSON() || !status.IsStatus(r.Body())) {
		return storage.NewBackendError(i, &r.Response)
	}
	h.addWarnings()
	return nil
}

// isNegotiated reports whether the backend's error passes as it is: because its errors do, or because it is written in
// another language than JSON for which the client asked.
func isNegotiated(r *storage.Response, types *storage.MediaTypes) bool {
	media, _, _ := bytes.Cut(r.ContentType(), []byte(";"))
	media = bytes.TrimSpace(media)
	return (len(media) > 0 || types.Errors == storage.Anything) && storage.Has(types.Errors, string(media))
}

// refuse writes an error as a Status, or in the form that is asked for. All errors of the gateway itself are written here.
func (h *handler) refuse(err error) {
	r := &h.request.Response
	if to, is := errors.AsType[*elsewhere](err); is {
		to.write(r)
		showNames(h, r)
		return
	}
	e := statusOf(err)
	noteRefusal(h, e)
	if h.incoming.Refusal != nil {
		h.trail.nameNew() // no more of its head is used
	}
	if h.incoming.Head.IsGRPC() {
		writeGRPC(r, e)
		h.trail.refused = int(e.ErrStatus.Code)
	} else {
		code, contentType, body := formOf(h, e)
		if h.route == nil && code == http.StatusNotFound && string(h.incoming.Head.Method) == http.MethodHead {
			contentType = "" // of a body that no client gets, and some read what has this type
		}
		writeRefusal(r, e, code, contentType, body)
	}
	showTransport(h, r)
	showNames(h, r)
	h.addWarnings()
	var answered *storage.BackendError
	if errors.As(err, &answered) {
		answered.SetHeaders(&r.Response)
	}
	if h.who.challenge != "" {
		r.Add("WWW-Authenticate", h.who.challenge)
	}
	if e.ErrStatus.Code == http.StatusUnsupportedMediaType && h.scope != nil {
		showAccepted(h)
	}
	if e.ErrStatus.Code == http.StatusMethodNotAllowed {
		allowed := methodsOf(h, str(h.incoming.Head.Method))
		if i := &h.request.Info; i.IsUndescribed && !i.IsOtherMethod {
			allowed = onlyReads // the gateway refuses the method of no other undescribed request
		}
		r.Add("Allow", allowed)
	}
	h.limits.show()
}

// showAccepted says in an answer 415 what the request's body may be (RFC 5789, 2.2; RFC 7694, 3).
func showAccepted(h *handler) {
	r := &h.request.Response
	if h.incoming.Head.Has(message.FieldContentEncoding) {
		r.Add("Accept-Encoding", cmp.Or(h.scope.storage.MediaTypes().Encodings, "identity"))
	}
	if i := &h.request.Info; i.Verb == resource.VerbPatch {
		r.Add("Accept-Patch", h.body.acceptedPatches(h.scope.operation))
	}
}

// showNames says in an answer by what the request is named, and in which trace it is.
func showNames(h *handler, r *storage.Response) {
	if id := h.trail.record.ID; id != "" && r.Header(requestIDHeader) == nil {
		r.Add(requestIDHeader, id)
	}
	if value := traceparentOf(h); value != "" && r.Header(traceparentHeader) == nil {
		r.Add(traceparentHeader, value)
	}
}

// traceparentOf returns the place of the request in its trace as a backend learns of it; "" if nothing is traced.
func traceparentOf(h *handler) string {
	if h.gateway.observers.tracer == nil || h.incoming.Refusal != nil {
		return ""
	}
	if _, line, found := bytes.Cut(h.trail.lines, []byte(traceparentHeader+": ")); found {
		value, _, _ := bytes.Cut(line, []byte("\r\n"))
		return str(value)
	}
	return str(h.incoming.Head.Value(message.FieldTraceparent))
}

// noteRefusal keeps what the gateway refused the request for.
func noteRefusal(h *handler, e *status.Error) {
	h.trail.events.NoteStatus(&e.ErrStatus)
	o := &h.trail.record.Outcome
	o.Reason = string(e.ErrStatus.Reason)
	o.Decision = telemetry.Decision{Policy: h.limits.refusedBy}
	if d := e.ErrStatus.Details; d != nil && len(d.Causes) > 0 {
		o.Field = d.Causes[0].Field
	}
	if denials := h.admission.report.Denials(); len(denials) > 0 && h.permission.refusal == nil {
		d := &denials[0]
		o.Decision = telemetry.Decision{Policy: d.Policy, Binding: d.Binding, Field: d.Cause.Field}
	}
}

// formOf writes a refusal in the format that a file says of the resource, or else the configuration of the route: as a Status,
// as problem details, or by a template. A client that accepts problem details, and not the media type of the template, gets
// them in any case. A template that fails leaves the Status.
func formOf(h *handler, e *status.Error) (code int, contentType string, body []byte) {
	var format config.ErrorFormat
	var name string
	route := h.route
	if route == nil { // the head was refused before anything was known of the path
		route, _ = routeOf(h)
	}
	if route != nil {
		format, name = route.formatOf(h.request.Resource)
	}
	template := h.set.ErrorTemplate(name)
	if h.gateway.refusesPlainly {
		format, template = config.StatusErrors, nil
	}
	asked := h.incoming.Refusal == nil && h.incoming.Head.Has(message.FieldAccept) && h.incoming.Head.Accepts(false, status.ProblemType)
	if template != nil && !(asked && !h.incoming.Head.Accepts(true, template.MediaType())) {
		if code, body, ok := fill(h, template, e); ok {
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
func fill(h *handler, t *refusal.Template, e *status.Error) (code int, body []byte, ok bool) {
	r := refusal.Refusal{
		Status: &e.ErrStatus, Parameters: h.admission.wrong, RequestID: h.trail.record.ID,
		Method: str(h.incoming.Head.Method), Path: str(pathOf(h.trail.target)),
	}
	code, body, err := t.Write(&r)
	if err == nil {
		return code, body, true
	}
	h.gateway.metrics.ErrorTemplateFailed(t.Name())
	if times, tell := h.gateway.often.failures.Allow("template "+t.Name(), time.Now()); tell {
		h.gateway.log.Warn("an ErrorTemplate failed, and the refusal is a Status", "template", t.Name(), "cause", err.Error(), "times", times)
	}
	return 0, nil, false
}

// notCached is how kube-apiserver marks every answer: who asks decides about it.
const notCached = "no-cache, private"

// writeStatus makes a Status the answer. No cache in between keeps it, not even of the codes that may be kept if nothing
// else is said: 404, 405, 410 and 414.
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

// answerPanic answers a request whose handler panicked with a 500 that shows nothing.
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

// addWarnings adds the warnings gathered on the way to the answer.
func (h *handler) addWarnings() {
	if len(h.request.Warnings) == 0 {
		return
	}
	for _, value := range status.WarningHeaders(h.request.Warnings) {
		h.request.Response.Add("Warning", value)
	}
	h.request.Warnings = h.request.Warnings[:0]
	cors.Expose(&h.request.Response.Response, "Warning")
}

// isEndless reports whether the answer seems to consist of events, and to go on for as long as both sides like: a watch, of
// paths too that no policy file describes, or a stream of events.
func isEndless(r *storage.Request) bool {
	i := &r.Info
	watch, _ := i.Param("watch")
	if i.Options.Watch || !i.IsResource && (watch == "true" || watch == "1") {
		return true
	}
	return r.Response.IsStream() && isEventStream(r)
}

func isEventStream(r *storage.Request) bool {
	media, _, _ := bytes.Cut(r.Response.ContentType(), []byte(";"))
	return bytes.EqualFold(bytes.TrimSpace(media), []byte("text/event-stream"))
}

// mayEndEarly reports whether a shutdown may end the answer after any event, as a complete one, because its client is known
// to ask again for what follows: a watch of a resource, as Kubernetes has them, or what an EventSource of a browser reads,
// which sends GET. Of any other answer the client would take a part for the whole: what a POST streams is an answer that it
// does not ask for again, and what undescribed paths stream is not known.
func mayEndEarly(h *message.Head, r *storage.Request) bool {
	if string(h.Method) != http.MethodGet {
		return false
	}
	return r.Info.IsResource && r.Info.Options.Watch || r.Response.IsStream() && isEventStream(r)
}

// flowOf returns what a shutdown does with an answer that comes as a stream.
func flowOf(h *message.Head, r *storage.Request) server.Flow {
	switch {
	case mayEndEarly(h, r):
		return server.Events
	case isFollowed(&r.Info):
		return server.Lasting
	}
	return server.Whole
}

// isFollowed reports whether the answer is a log that is followed.
func isFollowed(i *resource.Info) bool {
	follow, _ := i.Param("follow")
	return i.Subresource == "log" && (follow == "true" || follow == "1")
}
