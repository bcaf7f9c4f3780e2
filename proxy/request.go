package proxy

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/policies"
)

// A handler serves one request. It has all that is known of the request for as long as it lasts, and memory
// that is kept for the next one. What points into the client's bytes is valid until the handler returns, and
// not longer. What an attempt at a write learns is in write alone.
type handler struct {
	parts
	gateway  *Gateway
	incoming *server.Request // as the server read it
	// set is the snapshot of policies that every step of this request uses, storage the request's
	// resource at the backend that it goes to.
	set      *policies.Set
	listener *listeners.Listener // that takes the request; nil until it is known
	route    *route              // nil until it is known
	scope    *scope              // of the operation that it asks for; nil until it is known
	target   []byte              // memory for what the backend gets in place of the client's target

	body       bodyReader
	who        who
	permission permission
	named      compress.Variant // of the answer that the client has, by its If-None-Match
	kept       int              // how many of the warnings are not of the attempt at hand
	upgrade    upgrade
	// isTriedUnread says that the request passes as undescribed, because its description is only tried.
	isTriedUnread bool
	detached      bool // the answer goes on without the handler
}

// parts keep memory from one request to the next.
type parts struct {
	request   *storage.Request
	write     *storage.Write // the attempt at hand
	asked     *storage.Write // the Scale that a write of the scale subresource asks for
	admission *admitter
	limits    *limits
	trail     *trail
}

// An upgrade is the change of a connection to another protocol.
type upgrade struct {
	protocol []byte           // that the request asks to go on in, if that is allowed
	tunnel   *upstream.Tunnel // to the backend, if it agreed
}

// who says who sent the request.
type who struct {
	user      identity.User
	client    netip.Addr
	refusal   error            // of a client that is not known; nil for one that is
	asking    identity.Request // what the request says of who sent it
	challenge string           // what a client that is not known has to show
	lines     []byte           // the header lines that name the user to the backend
}

func newHandler() *handler {
	return &handler{parts: parts{
		request: new(storage.Request), write: new(storage.Write), asked: new(storage.Write),
		admission: new(admitter), limits: new(limits), trail: new(trail),
	}}
}

// answer serves one request of a connection. What it returns is to be sent, and needs the Gateway no longer.
func (g *Gateway) answer(r *server.Request) *detachedAnswer {
	defer g.leave()
	h, _ := g.handlers.Get().(*handler)
	if h == nil {
		h = newHandler()
	}
	h.gateway, h.incoming, h.set = g, r, g.policies()
	h.request.Started, h.request.Head = time.Now(), &r.Head
	h.limits.begin(h)
	h.request.Memory, h.request.Client, h.request.Limits = &r.Memory, r.Client, &g.requestLimits
	g.metrics.RequestStarted()
	return h.respond()
}

// finish counts the request and gives its memory back, also after a panic. The server answers that one with 500, unless
// an answer went out before.
func (h *handler) finish() {
	p := recover()
	h.limits.leave()
	if !h.detached {
		r := recorded(h)
		if p != nil && !h.incoming.Answered() {
			r.Outcome.Code = http.StatusInternalServerError
			answerFailure(h)
		}
		var found []audit.Annotation
		if !h.admission.report.IsEmpty() {
			found = annotationsOf(&h.admission.report)
		}
		if h.trail.story != nil {
			found = append(found, audit.Annotation{Key: audit.Explained, Value: "true"})
		}
		if h.request.IsUnknown() {
			found = append(found, audit.Annotation{Key: audit.Outcome, Value: "unknown"})
		}
		h.trail.events.End(r.Outcome.Code, p != nil, found)
		if h.route != nil && h.route.backend.events != nil {
			recordEvents(h, r.Outcome.Code)
		}
		h.gateway.observe(r, h.scope, h.trail.spans)
		if p == nil && h.trail.answers != nil {
			h.trail.answers.Finish()
		}
	}
	h.release()
	if p != nil {
		panic(p)
	}
}

// release puts the handler back, without anything of the request but memory.
func (h *handler) release() {
	handlers := &h.gateway.handlers
	h.request.Unlock()
	if !h.detached {
		h.incoming.Memory.Close()
	}
	h.write.Release()
	h.asked.Release()
	h.request.Reset()
	h.admission.reset()
	h.limits.reset()
	h.trail.reset()
	parts, lines, target := h.parts, storage.Kept(h.who.lines), storage.Kept(h.target)
	*h = handler{} // in place: a literal with what is kept would be copied
	h.parts, h.who.lines, h.target = parts, lines, target
	handlers.Put(h)
}
