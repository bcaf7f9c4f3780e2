package proxy

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
	"github.com/admission-gateway/gateway/proxy/responses"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// requestTelemetry is what logs, traces, metrics and explanations have of a request, beside what is known of it anyway.
type requestTelemetry struct {
	noted
	events audit.Recording // for the audit log
	// lines carry the request's ID to the backend. They have the id, unless the client's own head
	// has it.
	lines []byte
	// object is the name of an object that is created, which the URL does not have.
	object []byte
}

// noted is what is forgotten with the request.
type noted struct {
	record telemetry.Record
	target []byte // as the client sent it
	// stripped are fields of the client that the lines stand for.
	stripped    message.FieldSet
	spans       *spans.Spans         // nil if the request is not traced
	answers     *responses.Watch     // nil if no document is asked about answers
	explanation *explaining.Recorder // nil if no explanation is wanted
	form        explanation.Form     // of the explanation
	isNamed     bool
	kind        string // of the object, if policies found something that is recorded as an Event
	number      uint64 // of the request in the decision log; 0 until it has a decision
	// refused is the HTTP status code that a refusal stands for which the client gets in another form; 0 for none.
	refused int
}

// context returns the context of the work for the request, with its trace. It ends when the client leaves.
func (t *requestTelemetry) context(c *presence.Client) context.Context {
	switch {
	case c == nil:
		return t.spans.Context()
	case t.spans == nil:
		return c
	}
	return c.Within(t.spans.Context())
}

// noteObject keeps the name of the object that is written.
func (t *requestTelemetry) noteObject(name string) { t.object = append(t.object[:0], name...) }

// reset forgets the request and keeps memory.
func (t *requestTelemetry) reset() {
	t.noted, t.lines, t.object = noted{}, storage.Kept(t.lines), storage.Kept(t.object)
}

const (
	requestIDHeader   = "X-Request-Id"
	traceparentHeader = "traceparent"
	// maxRequestID is how much of a client's id is repeated, in bytes.
	maxRequestID = 128
)

// nameRequest gives the request its id, the client's own or a new one, and its place in a trace. It is called again if
// the head moves.
func nameRequest(r *request, head *message.Head) {
	t := r.telemetry
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
	if r.gateway.observers.tracer != nil {
		follow(r, head)
	}
}

// follow decides whether the request is traced, and propagates that to backends. A client's own
// traceparent stays if the gateway adds no span to the trace.
func follow(r *request, head *message.Head) {
	t := r.telemetry
	start := r.gateway.observers.tracer.Look(head.Value(message.FieldTraceparent), head.Value(message.FieldTracestate))
	if !start.HasParent {
		t.stripped = message.Fields(message.FieldTraceparent, message.FieldTracestate)
	}
	switch {
	case start.IsTraced:
		t.stripped |= message.Fields(message.FieldTraceparent)
		t.spans = spans.New(r.gateway.observers.tracer.Begin(start, r.Started, t.lines), &r.gateway.observers.redis)
		t.record.Trace = t.spans.Trace()
		t.lines = append(t.lines[:0], t.spans.Lines()...)
		r.Exchanges.Tracer = t.spans
	case !start.HasParent:
		t.lines = start.AppendUntraced(t.lines)
	}
}

// nameNew gives the request a new id, once.
func (t *requestTelemetry) nameNew() {
	if len(t.lines) > 0 {
		return
	}
	const start = requestIDHeader + ": "
	t.lines = telemetry.AppendRequestID(append(t.lines, start...))
	t.lines = append(t.lines, "\r\n"...)
	t.record.ID = str(t.lines[len(start) : len(t.lines)-len("\r\n")])
}

// recorded completes the record of the request.
func recorded(r *request) *telemetry.Record {
	record := &r.telemetry.record
	record.Client, record.User = r.who.client, r.who.user.Name
	record.InForce = r.gateway.inForce(r.set)
	record.Outcome.Code = cmp.Or(r.telemetry.refused, r.Response.Status(), status.ClientClosedRequest)
	if report := &r.attempt.report; !report.IsEmpty() {
		record.Outcome.NotEnforced = notedIn(report)
	}
	record.Usage.Started, record.Usage.Backend, record.Usage.Received = r.Started, r.Exchanges.Took,
		r.incoming.BodyBytes()
	if r.route != nil {
		record.Routing = r.route.way
	}
	i := &r.Info
	record.Resource = telemetry.ResourceRef{
		Verb: i.VerbName(), Group: i.Group, Resource: i.Resource, Subresource: i.Subresource, Namespace: i.Namespace,
		Name:        i.Name,
		IsDescribed: r.Resource != nil,
	}
	if i.Documented != nil {
		record.Resource.Resource, record.Resource.IsDescribed = i.Template, true
	}
	if i.Name == "" {
		record.Resource.Name = str(r.telemetry.object)
	}
	if r.scope != nil {
		record.Resource.Template = r.scope.template
	}
	if i.IsUndescribed && r.incoming.Head.IsGRPC() {
		record.Resource.Group, record.Resource.Resource = callOf(pathOf(r.telemetry.target))
		record.Resource.IsDescribed = r.gateway.calls.has(pathOf(r.telemetry.target))
	}
	head := &r.incoming.Head
	record.Request.Version = versionOf(r.incoming)
	if r.incoming.Refusal == nil {
		record.Request = telemetry.ClientRequest{
			Method: str(head.Method), Host: str(head.Host), Path: str(pathOf(r.telemetry.target)),
			UserAgent: str(head.Value(message.FieldUserAgent)), Version: record.Request.Version,
		}
	}
	record.Request.Scheme = r.incoming.Peer().Proto
	return record
}

// inForce names what decides over a request.
func (g *Gateway) inForce(set *policies.Set) telemetry.InForce {
	return telemetry.InForce{Configuration: g.configuration, Policies: telemetry.ShortHash(set.Hash())}
}

// detachedRecord returns a record for an answer that goes on without its request. The request's head stays until then,
// what the request itself has does not.
func detachedRecord(r *request) telemetry.Record {
	record := *recorded(r)
	record.ID, record.User, record.Resource.Name = strings.Clone(record.ID), strings.Clone(record.User),
		strings.Clone(record.Resource.Name)
	return record
}

// at records that a step of the way begins, if an explanation is wanted.
func at(r *explaining.Recorder, s explaining.Step, w *storage.Write) {
	if r != nil {
		r.At(s, w)
	}
}

// observe reports a request that is over.
func (g *Gateway) observe(r *telemetry.Record, in *scope, spans *spans.Spans) {
	r.Usage.Took = time.Since(r.Usage.Started)
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

// versionOf returns the version of HTTP of a request as OpenTelemetry's conventions write it: 1.0, 1.1, 2, 3. It is
// empty for a request of HTTP/1 whose head cannot be read.
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
