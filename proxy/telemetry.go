package proxy

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/story"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
	"github.com/admission-gateway/gateway/proxy/responses"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// A trail keeps of a request, while it is served, all that its record takes from nowhere else.
type trail struct {
	noted
	events audit.Recording // for the audit log
	// lines carry the request's ID to the backend. They have the id, unless the client's own head
	// has it.
	lines []byte
	// object is the name of an object that is created, which the URL does not have.
	object []byte
}

// noted is what a trail keeps of one request, and forgets with it.
type noted struct {
	record telemetry.Record
	target []byte // as the client sent it
	// stripped are fields of the client that the lines stand for.
	stripped message.FieldSet
	spans    *spans.Spans         // nil if the request is not traced
	answers  *responses.Watch     // nil if no document is asked about answers
	story    *explaining.Recorder // nil if no explanation is wanted
	form     story.Form           // of the explanation
	isNamed  bool
	// refused is the HTTP status code that a refusal stands for which the client gets in another form; 0 for none.
	refused int
}

// context returns the context of the work for the request, with its trace. It ends when the client leaves.
func (t *trail) context(c *presence.Client) context.Context {
	switch {
	case c == nil:
		return t.spans.Context()
	case t.spans == nil:
		return c
	}
	return c.Within(t.spans.Context())
}

// noteObject keeps the name of the object that is written.
func (t *trail) noteObject(name string) { t.object = append(t.object[:0], name...) }

// reset forgets the request and keeps memory.
func (t *trail) reset() {
	t.noted, t.lines, t.object = noted{}, storage.Kept(t.lines), storage.Kept(t.object)
}

const (
	requestIDHeader   = "X-Request-Id"
	traceparentHeader = "traceparent"
	// maxRequestID is how much of a client's id is repeated, in bytes.
	maxRequestID = 128
)

// name gives the request its id, the client's own or a new one, and its place in a trace. It is called again if the
// head moves.
func (h *handler) name(head *message.Head) {
	t := h.trail
	t.target = head.Target
	own := head.Value(message.FieldXRequestID)
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

// follow decides whether the request is traced, and propagates that to backends. A client's own
// traceparent stays if the gateway adds no span to the trace.
func follow(h *handler, head *message.Head) {
	t := h.trail
	start := h.gateway.observers.tracer.Look(head.Value(message.FieldTraceparent), head.Value(message.FieldTracestate))
	if !start.HasParent {
		t.stripped = message.Fields(message.FieldTraceparent, message.FieldTracestate)
	}
	switch {
	case start.IsTraced:
		t.stripped |= message.Fields(message.FieldTraceparent)
		t.spans = spans.New(h.gateway.observers.tracer.Begin(start, h.request.Started, t.lines), &h.gateway.observers.redis)
		t.record.Trace = t.spans.Trace()
		t.lines = append(t.lines[:0], t.spans.Lines()...)
		h.request.Exchanges.Tracer = t.spans
	case !start.HasParent:
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
	r.InForce = h.gateway.inForce(h.set)
	r.Outcome.Code = cmp.Or(h.trail.refused, h.request.Response.Status(), status.ClientClosedRequest)
	if report := &h.admission.report; !report.IsEmpty() {
		r.Outcome.Noted = notedIn(report)
	}
	r.Spent.Started, r.Spent.Backend, r.Spent.Received = h.request.Started, h.request.Exchanges.Took, h.incoming.BodyBytes()
	if h.route != nil {
		r.Way = h.route.way
	}
	i := &h.request.Info
	r.About = telemetry.About{
		Verb: i.VerbName(), Group: i.Group, Resource: i.Resource, Subresource: i.Subresource, Namespace: i.Namespace, Name: i.Name,
		IsDescribed: h.request.Resource != nil,
	}
	if i.Documented != nil {
		r.About.Resource, r.About.IsDescribed = i.Template, true
	}
	if i.Name == "" {
		r.About.Name = str(h.trail.object)
	}
	if h.scope != nil {
		r.About.Template = h.scope.template
	}
	if i.IsUndescribed && h.incoming.Head.IsGRPC() {
		r.About.Group, r.About.Resource = callOf(pathOf(h.trail.target))
		r.About.IsDescribed = h.gateway.calls.has(pathOf(h.trail.target))
	}
	head := &h.incoming.Head
	r.Asked.Version = versionOf(h.incoming)
	if h.incoming.Refusal == nil {
		r.Asked = telemetry.Asked{
			Method: str(head.Method), Host: str(head.Host), Path: str(pathOf(h.trail.target)),
			UserAgent: str(head.Value(message.FieldUserAgent)), Version: r.Asked.Version,
		}
	}
	r.Asked.Scheme = h.incoming.Peer().Proto
	return r
}

// inForce names what decides over a request.
func (g *Gateway) inForce(set *policies.Set) telemetry.InForce {
	return telemetry.InForce{Configuration: g.configuration, Policies: telemetry.ShortHash(set.Hash())}
}

// detachedRecord returns a record for an answer that goes on without the handler. The request's head stays until then,
// what the handler itself has does not.
func detachedRecord(h *handler) telemetry.Record {
	r := *recorded(h)
	r.ID, r.User, r.About.Name = strings.Clone(r.ID), strings.Clone(r.User), strings.Clone(r.About.Name)
	return r
}

// at records that a step of the way begins, if an explanation is wanted.
func at(r *explaining.Recorder, s explaining.Step, w *storage.Write) {
	if r != nil {
		r.At(s, w)
	}
}

// observe reports a request that is over.
func (g *Gateway) observe(r *telemetry.Record, in *scope, spans *spans.Spans) {
	r.Spent.Took = time.Since(r.Spent.Started)
	g.metrics.RequestEnded()
	var series *telemetry.Series
	if in != nil {
		series = in.series
	}
	g.metrics.RequestDone(r, series)
	if g.observers.access != nil {
		g.observers.access.Add(r)
	}
	if spans != nil {
		spans.Finish(r)
	}
}

// versionOf returns the version of HTTP of a request as OpenTelemetry's conventions write it: 1.0, 1.1, 2, 3. It is empty for a
// request of HTTP/1 whose head cannot be read.
func versionOf(r *server.Request) string {
	switch {
	case len(r.Head.Unserved) > 0 && r.Head.Unserved[0] != '1':
		return strings.TrimSuffix(str(r.Head.Unserved), ".0")
	case len(r.Head.Unserved) > 0:
		return str(r.Head.Unserved)
	case r.Head.IsHTTP2:
		return "2"
	case r.Refusal != nil:
		return ""
	}
	return r.Head.Version()
}
