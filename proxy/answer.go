package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/rewrite"
)

// respond serves the request, up to an answer that may go on for hours.
func respond(r *request) *detachedAnswer {
	defer finish(r)
	err := serveWithin(r)
	r.incoming.Memory.Rest() // the answer goes out at the pace of who reads it
	if r.telemetry.explanation != nil {
		tellStory(r, err)
		err = nil
	}
	if err == nil {
		err = checkOpened(r)
	}
	if err != nil {
		sendRefusal(r, err)
		return nil
	}
	if r.incoming.Head.IsGRPC() {
		r.gateway.calls.note(pathOf(r.telemetry.target), &r.Response)
	}
	for i := range r.scope.answer {
		r.scope.answer[i].run(r)
	}
	switch answer := &r.Response; {
	case isDetachable(r):
		return detach(r)
	case answer.IsStream():
		// How a stream ends shows on the connection; the answer's code is sent already.
		sent, err := r.incoming.SendStream(&answer.Response, flowOf(&r.incoming.Head, r.Request), r.Editor,
			readAheadOf(r))
		r.telemetry.record.Usage.Sent = sent
		if err != nil && !r.incoming.Answered() {
			sendRefusal(r, err)
		}
	default:
		defer leaveFlightEarly(r, answer.Size())()
		sendAnswer(r)
	}
	return nil
}

// readAheadOf has an answer that comes as a stream read from the backend as far as the client's share of the memory
// goes, if the request has a place among those that are served: it is done then, but for what the client has yet to
// take.
func readAheadOf(r *request) *server.ReadAhead {
	if !r.limits.charges.BoundsInFlight() {
		return nil
	}
	return &server.ReadAhead{Share: shareOf(r), Done: func() {
		leaveFlight(r)
		if r.Editor != nil {
			r.Editor.Release()
			r.Editor = nil
		}
		r.incoming.Memory.Keep(0)
	}}
}

// shareWithScripts lets scripts of other origins read the answer.
func shareWithScripts(r *request) {
	if r.route.cors != nil || r.incoming.Head.Has(message.FieldOrigin) {
		noteGrants(r)
		shareAnswer(r)
	}
}

// leaveEarly gives the place of a request that may last to others, as Kubernetes does: a watch is served once it has
// begun.
func leaveEarly(r *request) {
	if r.limits.charges.BoundsInFlight() && (r.upgrade.tunnel != nil || isEndless(r.Request) || isFollowed(&r.Info)) {
		leaveFlight(r)
	}
}

// An answerStep completes an answer before it is sent.
type answerStep struct {
	name string
	run  func(*request)
}

// answerOf returns what is done with the answers of an operation, in its order. What nothing in force asks for is not
// among it.
func (g *Gateway) answerOf(s *scope, i *resource.Info) []answerStep {
	var all []answerStep
	add := func(isAsked bool, name string, run func(*request)) {
		if isAsked {
			all = append(all, answerStep{name, run})
		}
	}
	isLimited := s.limits != nil
	add(s.route.rules != nil, "rewrite", rewriteAnswer)
	add(s.route.rules == nil && s.backend.authorities != nil, "locate", hideBackend)
	add(s.route.answerEdits != nil, "edit", editAnswer)
	add(g.observers.audit != nil && s.set.Audit() != nil, "audit", recordAnswer)
	add(isLimited, "limits", func(r *request) { showLimits(r) })
	add(g.listening.isStrict, "transport", func(r *request) { showTransport(r, &r.Response) })
	add(g.observers.isIDShown, "names", func(r *request) { showNames(r, &r.Response) })
	add(s.route.cors != nil || s.backend.grants != nil, "share", shareWithScripts)
	add(isLimited, "leave", leaveEarly)
	add(true, "memory", keepAnswer)
	add(true, "encode", encodeAnswer)
	return all
}

// serveWithin serves the request within the memory that it may have, and for as long as its client waits: one that was
// refused memory, or its turn, is refused, and one whose client has left is over, whatever a step of its way, or a
// policy within it, made of that.
func serveWithin(r *request) error {
	err := runStages(r)
	if err != nil && r.incoming.Client.HasLeft() {
		return presence.ErrLeft
	}
	if r.incoming.Memory.Refusal() != memory.None || errors.Is(err, document.ErrNoMemory) {
		return r.Exhausted()
	}
	return err
}

// keepAnswer lets everything go but the answer, which goes out at the pace of who reads it.
func keepAnswer(r *request) {
	share := &r.incoming.Memory
	if share.Used() <= memory.Allowance {
		return
	}
	r.attempt.Write.Release()
	r.asked.Release()
	r.incoming.ReleaseBody()
	r.Body = nil
	r.ForgetQuestions()
	share.Keep(r.Response.Size())
}

// sendRefusal answers for the gateway itself. The request is no longer served then.
func sendRefusal(r *request, err error) {
	noteGrants(r)
	refuse(r, err)
	if isRecorded(r) {
		recordAnswer(r)
	}
	leaveFlight(r)
	if r.incoming.Refusal != nil {
		shareKnown(r, &r.Response.Response)
	} else {
		shareAnswer(r)
	}
	keepAnswer(r)
	if !r.incoming.Break(err) {
		sendAnswer(r)
	}
}

// sendAnswer sends an answer that is in memory.
func sendAnswer(r *request) {
	answer := &r.Response
	if !r.IsHead() {
		r.telemetry.record.Usage.Sent = int64(len(answer.Body()))
	}
	r.incoming.Send(&answer.Response)
}

// isDetachable reports whether the answer may go on for hours, and needs nothing of the request for that.
func isDetachable(r *request) bool {
	if r.upgrade.tunnel != nil {
		return true
	}
	e := r.Editor
	return r.incoming.IsDetached() && r.Response.IsStream() && (e == nil || e.HasEvents())
}

// checkOpened refuses an extended CONNECT whose answer is a 2xx without a tunnel: its client would take that for an
// open WebSocket.
func checkOpened(r *request) error {
	answer := &r.Response
	if !r.incoming.Head.IsExtendedConnect() || r.upgrade.tunnel != nil || answer.Status()/100 != 2 {
		return nil
	}
	code := answer.Status()
	answer.Discard()
	return status.Coded(http.StatusBadGateway,
		fmt.Sprintf("the handshake of WebSocket was answered %d, which opens none", code))
}

// strictTransport is the header by which browsers learn to use https alone.
const strictTransport = "Strict-Transport-Security"

// showTransport says in an answer over TLS that browsers are to use https alone, if the listener asks for it. What a
// backend says of it is not for the host that the browser knows.
func showTransport(r *request, answer *storage.Response) {
	l := r.listener
	if l == nil {
		l = r.incoming.Peer().Made
	}
	if l != nil && l.TLS != nil && l.StrictTransport != "" {
		answer.Set(strictTransport, l.StrictTransport)
	}
}

// completeAnswer makes of an error a Status (ERR-1) and adds warnings (ERR-6).
func completeAnswer(r *request, i *resource.Info) error {
	answer := &r.Response
	switch code := answer.Status(); {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		withholdWarnings(r)
		if err := orAsked(r); err != nil {
			return err
		}
	case r.KnowsStored() && !isHeard(r, code):
		withholdWarnings(r)
	}
	if answer.Status() >= 400 && !r.IsHead() && !isNegotiated(answer, r.scope.storage.MediaTypes()) &&
		(answer.IsStream() || !answer.IsJSON() || !status.IsStatus(answer.Body())) {
		return storage.NewBackendError(i, &answer.Response)
	}
	addWarnings(r)
	return nil
}

// isNegotiated reports whether the backend's error passes as it is: because its errors do, or because it is written in
// another language than JSON for which the client asked.
func isNegotiated(r *storage.Response, types *storage.MediaTypes) bool {
	media, _, _ := bytes.Cut(r.ContentType(), []byte(";"))
	media = bytes.TrimSpace(media)
	return (len(media) > 0 || types.Errors == storage.Anything) && storage.Has(types.Errors, string(media))
}

// showNames says in an answer by what the request is named, and in which trace it is.
func showNames(r *request, answer *storage.Response) {
	if id := r.telemetry.record.ID; id != "" && answer.Header(requestIDHeader) == nil {
		answer.Add(requestIDHeader, id)
	}
	if value := traceparentOf(r); value != "" && answer.Header(traceparentHeader) == nil {
		answer.Add(traceparentHeader, value)
	}
}

// traceparentOf returns the place of the request in its trace as a backend learns of it; "" if nothing is traced.
func traceparentOf(r *request) string {
	if r.gateway.observers.tracer == nil || r.incoming.Refusal != nil {
		return ""
	}
	if _, line, found := bytes.Cut(r.telemetry.lines, []byte(traceparentHeader+": ")); found {
		value, _, _ := bytes.Cut(line, []byte("\r\n"))
		return str(value)
	}
	return str(r.incoming.Head.Value(message.FieldTraceparent))
}

// addWarnings adds the warnings gathered on the way to the answer.
func addWarnings(r *request) {
	if len(r.Warnings) == 0 {
		return
	}
	for _, value := range status.WarningHeaders(r.Warnings) {
		r.Response.Add("Warning", value)
	}
	r.Warnings = r.Warnings[:0]
	cors.Expose(&r.Response.Response, "Warning")
}

// isEndless reports whether the answer seems to consist of events, and to go on for as long as both sides like: a
// watch, of paths too that no policy file describes, or a stream of events.
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

// mayEndEarly reports whether a shutdown may end the answer after any event, as a complete one, because its client is
// known to ask again for what follows: a watch of a resource, as Kubernetes has them, or what an EventSource of a
// browser reads, which sends GET. Of any other answer the client would take a part for the whole: what a POST streams
// is an answer that it does not ask for again, and what undescribed paths stream is not known.
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

// rewriteAnswer rewrites the backend's answer for the client.
func rewriteAnswer(r *request) {
	if r.upgrade.tunnel != nil {
		return
	}
	rules, answer, host := r.route.rules, &r.Response, str(r.incoming.Head.Host)
	showLocations(&answer.Response, func(value string) string { return rules.Location(value, host) })
	if answer.Header(setCookie) == nil {
		return
	}
	cookies := answer.Headers(setCookie)
	answer.Remove(setCookie)
	for _, c := range cookies {
		answer.Add(setCookie, rules.Cookie(c))
	}
}

// showLocations changes the URLs in an answer's head to the client's.
func showLocations(r *message.Response, shown func(value string) string) {
	if !r.HasLocation() {
		return
	}
	for _, name := range [...]string{"Location", "Content-Location"} {
		if value := string(r.Header(name)); value != "" {
			if now := shown(value); now != value {
				r.Set(name, now)
			}
		}
	}
}

// hideBackend makes paths of the URLs by which a backend names itself, on a route that does not rewrite.
func hideBackend(r *request) {
	if r.upgrade.tunnel != nil {
		return
	}
	showLocations(&r.Response.Response, func(value string) string {
		return rewrite.Own(value, str(r.incoming.Head.Host), r.route.backend.authorities)
	})
}
