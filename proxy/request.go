package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/policies"
)

// A request is what is known of a client's request while it is served. A stage sets what the stages behind it read.
// What points into the client's bytes is valid as long as the request is served. What an attempt at a write finds out
// is in the attempt alone, so that the next one starts afresh.
type request struct {
	pooled
	gateway  *Gateway
	incoming *server.Request     // as the server read it
	set      *policies.Set       // by which every stage goes
	listener *listeners.Listener // that takes the request; nil until it is known
	route    *route              // nil until it is known
	scope    *scope              // of the operation that it asks for; nil until it is known
	target   []byte              // memory for what the backend gets in place of the client's target

	who        who
	permission permission
	body       body
	parameters field.ErrorList  // what is wrong with the parameters of a request with an object
	wrong      []string         // the parameters among what is wrong, by their fields
	named      compress.Variant // of the answer that the client has, by its If-None-Match
	upgrade    upgrade
	// isShadow says that the request is the copy of one to which a description is not applied: it is judged and not
	// sent, and what policies find is not counted.
	isShadow bool
	// isUnreadable says that the request passes as undescribed, because it cannot be read as its description has it,
	// and that is not enforced.
	isUnreadable bool
	isDetached   bool // the answer goes on without the request
}

// errServed is the error of a stage that has served the request, so that no further stage runs.
var errServed = errors.New("the request is served")

// pooled is the memory that a request leaves for the next one.
type pooled struct {
	*storage.Request                // as the storage has it
	attempt          attempt        // the one at hand
	asked            *storage.Write // the Scale that a write of the scale subresource asks for
	prefilter        *prefilter
	limits           *limits
	telemetry        *requestTelemetry
}

// An attempt is one try at a write: what is written in place of what, and what was found of it.
type attempt struct {
	*storage.Write
	*findings
}

// of returns the attempt at another write that is a part of this one.
func (a attempt) of(w *storage.Write) attempt { return attempt{w, a.findings} }

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

func newRequest() *request {
	return &request{pooled: pooled{
		Request: new(storage.Request), attempt: attempt{new(storage.Write), new(findings)}, asked: new(storage.Write),
		prefilter: new(prefilter), limits: new(limits), telemetry: new(requestTelemetry),
	}}
}

// takeRequest returns a request of which nothing is known.
func (g *Gateway) takeRequest() *request {
	if r, is := g.requests.Get().(*request); is {
		return r
	}
	return newRequest()
}

// begin begins a request that was read.
func (r *request) begin(g *Gateway, incoming *server.Request, set *policies.Set) {
	r.gateway, r.incoming, r.set = g, incoming, set
	r.Started, r.Head = time.Now(), &incoming.Head
	r.Memory, r.Client, r.Limits = &incoming.Memory, incoming.Client, &g.requestLimits
}

// finish counts the request and gives its memory back, also after a panic. The server answers that one with 500, unless
// an answer went out before.
func finish(r *request) {
	p := recover()
	leaveFlight(r)
	if !r.isDetached {
		record := recorded(r)
		if p != nil && !r.incoming.Answered() {
			record.Outcome.Code = http.StatusInternalServerError
			answerFailure(r)
		}
		var found []audit.Annotation
		if !r.attempt.report.IsEmpty() {
			found = annotationsOf(&r.attempt.report)
		}
		if r.telemetry.explanation != nil {
			found = append(found, audit.Annotation{Key: audit.Explained, Value: "true"})
		}
		if r.IsUnknown() {
			found = append(found, audit.Annotation{Key: audit.Outcome, Value: "unknown"})
		}
		r.telemetry.events.End(record.Outcome.Code, p != nil, found)
		if r.route != nil && r.route.backend.events != nil {
			recordEvents(r, record.Outcome.Code)
		}
		r.gateway.observe(record, r.scope, r.telemetry.spans)
		if p == nil && r.telemetry.answers != nil {
			r.telemetry.answers.Finish()
		}
	}
	release(r)
	if p != nil {
		panic(p)
	}
}

// copyTo makes of another request a copy of what is known of r before it is served, with a head and a body of its own.
// No client waits for a copy, and nothing that the copy finds out is known of r.
func (r *request) copyTo(c *request, incoming *server.Request) {
	lines := append(c.who.lines[:0], r.who.lines...)
	c.gateway, c.incoming, c.set, c.listener, c.route, c.scope = r.gateway, incoming, r.set, r.listener, r.route,
		r.scope
	c.who, c.named = r.who, r.named
	c.who.lines = lines
	c.Started, c.Head, c.Memory, c.Limits, c.From = r.Started, &incoming.Head, &incoming.Memory, r.Limits, r.From
	c.SetSubject(&r.Info, r.Resource)
	c.telemetry.target, c.telemetry.record.ID = r.telemetry.target, r.telemetry.record.ID
}

// release gives the request back, without anything of it but memory.
func release(r *request) {
	r.Unlock()
	if !r.isDetached {
		r.incoming.Memory.Close()
	}
	requests := &r.gateway.requests
	r.reset()
	requests.Put(r)
}

// reset forgets the request and keeps memory for the next one.
func (r *request) reset() {
	r.attempt.Write.Release()
	r.asked.Release()
	r.Request.Reset()
	r.attempt.findings.reset()
	if r.prefilter.request != nil {
		r.prefilter.reset()
	}
	r.limits.reset()
	r.telemetry.reset()
	pooled, lines, target := r.pooled, storage.Kept(r.who.lines), storage.Kept(r.target)
	*r = request{} // in place: a literal with what is kept would be copied
	r.pooled, r.who.lines, r.target = pooled, lines, target
}

// pathOf returns the path of a target.
func pathOf(target []byte) []byte {
	path, _, _ := bytes.Cut(target, []byte("?"))
	return path
}

func equalFold(a []byte, b string) bool { return len(a) == len(b) && strings.EqualFold(str(a), b) }

// str is the string of bytes of the client's head, which live as long as the request is served.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
