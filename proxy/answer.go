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
func (h *handler) respond() *detachedAnswer {
	defer h.finish()
	err := h.serveWithin()
	h.incoming.Memory.Rest() // the answer goes out at the pace of who reads it
	if h.trail.story != nil {
		tellStory(h, err)
		err = nil
	}
	if err == nil {
		err = h.checkOpened()
	}
	if err != nil {
		h.sendRefusal(err)
		return nil
	}
	if h.incoming.Head.IsGRPC() {
		h.gateway.calls.note(pathOf(h.trail.target), &h.request.Response)
	}
	for i := range h.scope.answer {
		h.scope.answer[i].run(h)
	}
	switch r := &h.request.Response; {
	case h.isDetachable():
		return h.detach()
	case r.IsStream():
		// How a stream ends shows on the connection; the answer's code is sent already.
		sent, err := h.incoming.SendStream(&r.Response, flowOf(&h.incoming.Head, h.request), h.request.Editor, h.readAhead())
		h.trail.record.Spent.Sent = sent
		if err != nil && !h.incoming.Answered() {
			h.sendRefusal(err)
		}
	default:
		defer h.limits.leaveEarly(r.Size())()
		h.send()
	}
	return nil
}

// readAhead has an answer that comes as a stream read from the backend as far as the client's share of the memory goes, if the
// request has a place among those that are served: it is done then, but for what the client has yet to take.
func (h *handler) readAhead() *server.ReadAhead {
	if !h.limits.charges.Flying() {
		return nil
	}
	return &server.ReadAhead{Share: h.limits.share(), Done: func() {
		h.limits.leave()
		if h.request.Editor != nil {
			h.request.Editor.Release()
			h.request.Editor = nil
		}
		h.incoming.Memory.Keep(0)
	}}
}

// shareWithScripts lets scripts of other origins read the answer.
func shareWithScripts(h *handler) {
	if h.route.cors != nil || h.incoming.Head.Has(message.FieldOrigin) {
		noteGrants(h)
		shareAnswer(h)
	}
}

// leaveEarly gives the place of a request that may last to others, as Kubernetes does: a watch is served once it has
// begun.
func leaveEarly(h *handler) {
	if h.limits.charges.Flying() && (h.upgrade.tunnel != nil || isEndless(h.request) || isFollowed(&h.request.Info)) {
		h.limits.leave()
	}
}

// An answerStep completes an answer before it is sent.
type answerStep struct {
	name string
	run  func(*handler)
}

// answerOf returns what is done with the answers of an operation, in its order. What nothing in force asks for is not
// among it.
func (g *Gateway) answerOf(s *scope, i *resource.Info) []answerStep {
	var all []answerStep
	add := func(isAsked bool, name string, run func(*handler)) {
		if isAsked {
			all = append(all, answerStep{name, run})
		}
	}
	isLimited := s.limits != nil
	add(s.route.rules != nil, "rewrite", rewriteAnswer)
	add(s.route.rules == nil && s.backend.authorities != nil, "locate", hideBackend)
	add(s.route.answerEdits != nil, "edit", editAnswer)
	add(g.observers.audit != nil && s.set.Audit() != nil, "audit", recordAnswer)
	add(isLimited, "limits", func(h *handler) { h.limits.show() })
	add(g.listening.isStrict, "transport", func(h *handler) { showTransport(h, &h.request.Response) })
	add(g.observers.isIDShown, "names", func(h *handler) { showNames(h, &h.request.Response) })
	add(s.route.cors != nil || s.backend.grants != nil, "share", shareWithScripts)
	add(isLimited, "leave", leaveEarly)
	add(true, "memory", (*handler).keepAnswer)
	add(true, "encode", encodeAnswer)
	return all
}

// serveWithin serves the request within the memory that it may have, and for as long as its client waits: one that was refused
// memory, or its turn, is refused, and one whose client has left is over, whatever a step of its way, or a policy within it,
// made of that.
func (h *handler) serveWithin() error {
	err := h.serve()
	if err != nil && h.incoming.Client.HasLeft() {
		return presence.ErrLeft
	}
	if h.incoming.Memory.Refusal() != memory.None || errors.Is(err, document.ErrNoMemory) {
		return h.request.Exhausted()
	}
	return err
}

// keepAnswer lets everything go but the answer, which goes out at the pace of who reads it.
func (h *handler) keepAnswer() {
	share := &h.incoming.Memory
	if share.Used() <= memory.Allowance {
		return
	}
	h.write.Release()
	h.asked.Release()
	h.incoming.ReleaseBody()
	h.request.Body = nil
	h.request.ForgetQuestions()
	share.Keep(h.request.Response.Size())
}

// sendRefusal answers for the gateway itself. The request is no longer served then.
func (h *handler) sendRefusal(err error) {
	noteGrants(h)
	h.refuse(err)
	if isRecorded(h) {
		recordAnswer(h)
	}
	h.limits.leave()
	if h.incoming.Refusal != nil {
		shareKnown(h, &h.request.Response.Response)
	} else {
		shareAnswer(h)
	}
	h.keepAnswer()
	if !h.incoming.Break(err) {
		h.send()
	}
}

// send sends an answer that is in memory.
func (h *handler) send() {
	r := &h.request.Response
	if !h.request.IsHead() {
		h.trail.record.Spent.Sent = int64(len(r.Body()))
	}
	h.incoming.Send(&r.Response)
}

// isDetachable reports whether the answer may go on for hours, and needs nothing of the handler for that.
func (h *handler) isDetachable() bool {
	if h.upgrade.tunnel != nil {
		return true
	}
	e := h.request.Editor
	return h.incoming.IsDetached() && h.request.Response.IsStream() && (e == nil || e.HasEvents())
}
