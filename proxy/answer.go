package proxy

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
)

// respond serves the request, up to an answer that may go on for hours.
func respond(r *request) *detachedAnswer {
	defer finish(r)
	err := serveWithin(r)
	r.incoming.Memory.Rest() // the answer goes out at the pace of who reads it
	if r.trail.story != nil {
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
		r.gateway.calls.note(pathOf(r.trail.target), &r.Response)
	}
	for i := range r.scope.answer {
		r.scope.answer[i].run(r)
	}
	switch answer := &r.Response; {
	case isDetachable(r):
		return detach(r)
	case answer.IsStream():
		// How a stream ends shows on the connection; the answer's code is sent already.
		sent, err := r.incoming.SendStream(&answer.Response, flowOf(&r.incoming.Head, r.Request), r.Editor, readAheadOf(r))
		r.trail.record.Spent.Sent = sent
		if err != nil && !r.incoming.Answered() {
			sendRefusal(r, err)
		}
	default:
		defer leaveFlightEarly(r, answer.Size())()
		sendAnswer(r)
	}
	return nil
}

// readAheadOf has an answer that comes as a stream read from the backend as far as the client's share of the memory goes, if the
// request has a place among those that are served: it is done then, but for what the client has yet to take.
func readAheadOf(r *request) *server.ReadAhead {
	if !r.limits.charges.Flying() {
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
	if r.limits.charges.Flying() && (r.upgrade.tunnel != nil || isEndless(r.Request) || isFollowed(&r.Info)) {
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

// serveWithin serves the request within the memory that it may have, and for as long as its client waits: one that was refused
// memory, or its turn, is refused, and one whose client has left is over, whatever a step of its way, or a policy within it,
// made of that.
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
		r.trail.record.Spent.Sent = int64(len(answer.Body()))
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
