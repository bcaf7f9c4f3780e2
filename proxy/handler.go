package proxy

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/http1/server"
	"github.com/admission-gateway/gateway/internal/http1/upstream"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/story"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
	"github.com/admission-gateway/gateway/proxy/responses"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// A handler serves one request. It has all that is known of the request for as long as it lasts, and memory
// that is kept for the next one. What points into the client's bytes is valid until the handler returns, and
// not longer. What an attempt at a write learns is in write alone.
type handler struct {
	gateway  *Gateway
	incoming *server.Request // as the server read it
	// set is the snapshot of policies that every step of this request uses, storage what the request is
	// about at the backend that it goes to.
	set      *policies.Set
	route    *route
	upstream *backend // of the route
	target   []byte   // memory for what the backend gets in place of the client's target
	storage  storage.Storage

	request    storage.Request
	write      storage.Write // the attempt at hand
	asked      storage.Write // the Scale that a write of the scale subresource asks for
	body       bodyReader
	who        who
	admission  admitter
	limits     limits
	permission permission
	named      compress.Variant // of the answer that the client has, by its If-None-Match
	kept       int              // how many of the warnings are not of the attempt at hand

	upgrade  upgrade
	trail    trail
	detached bool // the answer goes on without the handler
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
	asking    identity.Request // what the request says of who sent it
	challenge string           // what a client that is not known has to show
	lines     []byte           // the header lines that tell the backend
}

var handlers = sync.Pool{New: func() any { return new(handler) }}

// handle serves one request of a connection.
func (g *Gateway) handle(r *server.Request) {
	h := handlers.Get().(*handler)
	h.gateway, h.incoming, h.set = g, r, g.policies()
	h.request.Started, h.request.Head = time.Now(), &r.Head
	h.limits.begin(h)
	h.permission.handler = h
	h.request.Memory, h.request.Limits = &r.Memory, &g.requestLimits
	g.metrics.RequestStarted()
	if d := h.respond(); d != nil {
		d.send()
	}
}

// respond serves the request, up to an answer that may go on for hours.
func (h *handler) respond() *detachedAnswer {
	defer h.finish()
	err := h.serveWithin()
	h.incoming.Memory.Rest() // the answer goes out at the pace of who reads it
	if h.trail.story != nil {
		tellStory(h, err)
		err = nil
	}
	if err != nil {
		h.sendRefusal(err)
		return nil
	}
	if rules := h.route.rules; rules != nil && h.upgrade.tunnel == nil {
		rewriteAnswer(rules, &h.request.Response.Response, str(h.incoming.Head.Host))
	}
	if isRecorded(h) {
		recordAnswer(h)
	}
	h.limits.show()
	if h.gateway.observers.isIDShown {
		showNames(h, &h.request.Response)
	}
	if mayShare(h) {
		noteGrants(h)
		shareAnswer(h)
	}
	if h.limits.charges.Flying() && (h.upgrade.tunnel != nil || isEndless(&h.request) || isFollowed(&h.request.Info)) {
		h.limits.leave() // as Kubernetes does: a watch is served once it has begun
	}
	h.keepAnswer()
	coding := compress.Identity
	if mayEncode(&h.request.Response) {
		coding = encodeAnswer(h)
	}
	if isVariant(&h.request.Response, coding) {
		markAnswer(h, coding)
	}
	switch r := &h.request.Response; {
	case h.isDetachable():
		return h.detach()
	case r.IsStream():
		// How a stream ends shows on the connection; the answer's code is sent already.
		sent, err := h.incoming.SendStream(&r.Response, flowOf(&h.request), h.request.Editor, h.readAhead())
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
func (h *handler) readAhead() *server.Ahead {
	if !h.limits.charges.Flying() {
		return nil
	}
	return &server.Ahead{Share: h.limits.share(), Done: func() {
		h.limits.leave()
		if h.request.Editor != nil {
			h.request.Editor.Release()
			h.request.Editor = nil
		}
		h.incoming.Memory.Keep(0)
	}}
}

// mayShare reports whether a script of another origin may ask for the answer.
func mayShare(h *handler) bool {
	return h.incoming.Head.Has(http1.FieldOrigin) || h.route != nil && h.route.cors != nil
}

// isRecorded reports whether the audit Policy asks for an event of the request.
func isRecorded(h *handler) bool { return h.trail.events.Wants(audit.Metadata) }

// mayEncode reports whether the gateway edits the answer, and either it is worth encoding, or it
// says that the client has it already.
func mayEncode(r *storage.Response) bool {
	return r.IsPlain() && (r.IsStream() || r.Status() == http.StatusNotModified || len(r.Body()) >= leastEncoded)
}

// isVariant reports whether the client gets, or has, other bytes than the backend's ETag names.
func isVariant(r *storage.Response, coding compress.Coding) bool {
	return coding != compress.Identity || r.IsRevised() || r.Status() == http.StatusNotModified && r.IsPlain()
}

// revisionOf names the policy files, which decide how answers are edited.
func revisionOf(set *policies.Set) string {
	hash := set.Hash()
	return hash[:min(len(hash), compress.RevisionLength)]
}

// sentAtOnce is up to which size an answer fits what a socket takes without waiting. The place of its request
// is free before it is sent: who has read it may ask again at once.
const sentAtOnce = 32 << 10

// serveWithin serves the request within the memory that it may have: one that was refused some, or its turn, is refused,
// whatever a step of its way, or a policy within it, made of that.
func (h *handler) serveWithin() (err error) {
	defer recoverMemory(&h.request, &err)
	err = h.serve()
	if h.incoming.Memory.Refusal() != memory.None {
		return h.request.Exhausted()
	}
	return err
}

// recoverMemory makes of the panic of an edit without memory the error that it is; any other goes on.
func recoverMemory(r *storage.Request, err *error) {
	switch p := recover(); p {
	case nil:
	case document.ErrNoMemory:
		*err = r.Exhausted()
	default:
		panic(p)
	}
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
	h.send()
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

// isConnect reports whether the request leads to somewhere else, or asks to go on in another protocol if that is
// allowed.
func (h *handler) isConnect() bool { return h.request.Info.Connect || h.upgrade.protocol != nil }

// isScale reports whether the request writes a scale that the gateway makes of the object itself.
func isScale(h *handler) bool {
	return h.request.Info.HasBody() && h.storage.Scaler() != nil
}

// isOpaque reports whether there is nothing to do with the object of the request.
func (h *handler) isOpaque() bool {
	i := &h.request.Info
	switch {
	case !i.HasBody():
		return true
	case h.request.Patch == storage.FormPatch: // whose fields have a schema
		return false
	}
	operation, _ := admission.OperationOf(i.Verb)
	return h.storage.IsOpaque(i) && !h.set.Conventions().Concern(i, operation)
}

// passesUnread reports whether nothing in force is about the body of the request, so that nobody has to read it: the backend
// gets it as it came.
func (h *handler) passesUnread() bool {
	i := &h.request.Info
	operation, _ := admission.OperationOf(i.Verb)
	return h.storage.MediaTypes().Unread && h.request.Patch != storage.FormPatch && h.storage.IsOpaque(i) &&
		!h.set.Conventions().Concern(i, operation)
}

// isOperation reports whether the request asks for something other than to read or write an object.
func isOperation(h *handler) bool {
	return h.request.Resource != nil && h.request.Resource.Operation != nil
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
		h.trail.events.End(r.Outcome.Code, p != nil, found)
		if h.upstream != nil && h.upstream.events != nil {
			recordEvents(h, r.Outcome.Code)
		}
		h.gateway.observe(r, h.trail.spans)
		if p == nil && h.trail.answers != nil {
			h.trail.answers.Finish()
		}
	}
	h.release()
	if p != nil {
		panic(p)
	}
}

// release puts the handler back, without anything of the request.
func (h *handler) release() {
	h.write.Release()
	h.asked.Release()
	h.request.Unlock()
	h.request.Reset()
	h.admission.reset()
	h.limits.reset()
	h.permission = permission{}
	if !h.detached {
		h.incoming.Memory.Close()
	}
	h.gateway, h.incoming, h.set, h.route, h.upstream, h.storage = nil, nil, nil, nil, nil, nil
	h.target, h.named = storage.Kept(h.target), compress.Variant{}
	h.body, h.who, h.kept = bodyReader{}, who{lines: storage.Kept(h.who.lines)}, 0
	h.upgrade, h.detached = upgrade{}, false
	h.trail.reset()
	handlers.Put(h)
}

// A trail keeps of a request, while it is served, all that its record takes from nowhere else.
type trail struct {
	record telemetry.Record
	events audit.Recording // for the audit log
	target []byte          // as the client sent it
	// lines tell the backend by what the request is named. They have the id, unless the client's own
	// head has it.
	lines []byte
	// object is the name of an object that is created, which the URL does not have.
	object []byte
	// stripped are fields of the client that the lines stand for.
	stripped http1.FieldSet
	spans    *spans.Spans         // nil if the request is not traced
	answers  *responses.Watch     // nil if no document is asked about answers
	story    *explaining.Recorder // nil if nobody asks for an explanation
	form     story.Form           // of the explanation
	isNamed  bool
}

// noteObject keeps the name of the object that is written.
func (t *trail) noteObject(name string) { t.object = append(t.object[:0], name...) }

// reset forgets the request and keeps memory.
func (t *trail) reset() {
	*t = trail{events: t.events, lines: storage.Kept(t.lines), object: storage.Kept(t.object)}
}

const (
	requestIDHeader   = "X-Request-Id"
	traceparentHeader = "traceparent"
	// maxRequestID is how much of a client's id is repeated, in bytes.
	maxRequestID = 128
)

// name gives the request its id, the client's own or a new one, and its place in a trace. It is called again if the
// head moves.
func (h *handler) name(head *http1.Head) {
	t := &h.trail
	t.target = head.Target
	own := head.Value(http1.FieldXRequestID)
	if len(own) > 0 {
		t.record.ID = str(own[:min(len(own), maxRequestID)])
	}
	if t.isNamed {
		return
	}
	t.isNamed = true
	if len(own) == 0 {
		t.nameNew()
	}
	if h.gateway.observers.tracer != nil {
		follow(h, head)
	}
}

// follow decides whether the request is traced, and tells backends. A client's own traceparent stays if the gateway adds no
// span to the trace.
func follow(h *handler, head *http1.Head) {
	t := &h.trail
	start := h.gateway.observers.tracer.Look(head.Value(http1.FieldTraceparent), head.Value(http1.FieldTracestate))
	if !start.HasParent() {
		t.stripped = http1.Fields(http1.FieldTraceparent, http1.FieldTracestate)
	}
	switch {
	case start.IsTraced:
		t.stripped |= http1.Fields(http1.FieldTraceparent)
		t.spans = spans.New(h.gateway.observers.tracer.Begin(start, h.request.Started, t.lines), &h.gateway.observers.redis)
		t.record.Trace = t.spans.Trace()
		t.lines = append(t.lines[:0], t.spans.Lines()...)
		h.request.Exchanges.Tracer = t.spans
	case !start.HasParent():
		t.lines = start.AppendUntraced(t.lines)
	}
}

// nameNew gives the request a new id, once.
func (t *trail) nameNew() {
	if len(t.lines) > 0 {
		return
	}
	const start = requestIDHeader + ": "
	t.lines = telemetry.AppendRequestID(append(t.lines, start...))
	t.lines = append(t.lines, "\r\n"...)
	t.record.ID = str(t.lines[len(start) : len(t.lines)-len("\r\n")])
}

// recorded completes the record of the request.
func recorded(h *handler) *telemetry.Record {
	r := &h.trail.record
	r.Client, r.User = h.who.client, h.who.user.Name
	r.Outcome.Code = h.request.Response.Status()
	if report := &h.admission.report; !report.IsEmpty() {
		r.Outcome.Noted = notedIn(report)
	}
	r.Spent.Started, r.Spent.Backend, r.Spent.Received = h.request.Started, h.request.Exchanges.Took, h.incoming.BodyBytes()
	if h.route != nil {
		r.Way = telemetry.Way{Route: h.route.place.Route, Upstream: h.route.backend.name}
	}
	i := &h.request.Info
	r.About = telemetry.About{
		Verb: i.Verb, Group: i.Group, Resource: i.Resource, Subresource: i.Subresource, Namespace: i.Namespace, Name: i.Name,
		IsDescribed: h.request.Resource != nil,
	}
	if i.Name == "" {
		r.About.Name = str(h.trail.object)
	}
	if s := h.trail.spans; s != nil {
		s.Know(h.incoming.Peer().Proto, templateOf(h))
	}
	if h.incoming.Refusal == nil {
		head := &h.incoming.Head
		r.Asked = telemetry.Asked{
			Method: str(head.Method), Host: str(head.Host), Path: str(pathOf(h.trail.target)),
			UserAgent: str(head.Value(http1.FieldUserAgent)), Minor: head.Minor,
		}
	}
	return r
}

// templateOf returns the path of the request as a template; "" if no file describes it.
func templateOf(h *handler) string {
	r, i := h.request.Resource, &h.request.Info
	if r == nil || !i.IsResource {
		return ""
	}
	var b strings.Builder
	for _, path := range r.Paths {
		if strings.Contains(path, "{name}") == (i.Name != "") {
			return path
		}
	}
	switch {
	case len(r.Paths) > 0:
		return r.Paths[0]
	case i.Group == "":
		b.WriteString("/api/" + i.Version)
	default:
		b.WriteString("/apis/" + i.Group + "/" + i.Version)
	}
	if i.Namespace != "" {
		b.WriteString("/namespaces/{namespace}")
	}
	b.WriteString("/" + i.Resource)
	if i.Name != "" {
		b.WriteString("/{name}")
	}
	if i.Subresource != "" {
		b.WriteString("/" + i.Subresource)
	}
	return b.String()
}

// detachedRecord returns a record for an answer that goes on without the handler. The request's head stays until then,
// what the handler itself has does not.
func detachedRecord(h *handler) telemetry.Record {
	r := *recorded(h)
	r.ID, r.User, r.About.Name = strings.Clone(r.ID), strings.Clone(r.User), strings.Clone(r.About.Name)
	return r
}

// at says that a step of the way begins, if somebody asks for an explanation.
func at(r *explaining.Recorder, s explaining.Step, w *storage.Write) {
	if r != nil {
		r.At(s, w)
	}
}

// observe tells of a request that is over.
func (g *Gateway) observe(r *telemetry.Record, spans *spans.Spans) {
	r.Spent.Took = time.Since(r.Spent.Started)
	g.metrics.RequestEnded()
	g.metrics.RequestDone(r)
	if g.observers.access != nil {
		g.observers.access.Add(r)
	}
	if spans != nil {
		spans.Finish(r)
	}
}
