package tracing

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

// A Start is how a request stands to a trace when it begins.
type Start struct {
	parent trace.SpanContext // invalid if there is none
	id     trace.TraceID
	// HasParent says that the client's own traceparent is good.
	HasParent bool
	// IsTraced says that the request has spans.
	IsTraced bool
}

// Look decides about a request by its traceparent and tracestate; nil if there is none.
func (t *Tracer) Look(header, state []byte) Start {
	if len(header) > 0 {
		if parent, ok := ParseTraceparent(header); ok {
			return t.below(parent, state)
		}
	}
	s := Start{id: newTraceID()}
	s.IsTraced = t.sampling.samples(s.parent, s.id)
	return s
}

// below decides about a request by the span of the client that it is a part of.
func (t *Tracer) below(parent trace.SpanContext, state []byte) Start {
	s := Start{parent: parent, id: parent.TraceID(), HasParent: true,
		IsTraced: t.sampling.samples(parent, parent.TraceID())}
	if s.IsTraced && len(state) > 0 {
		if parsed, err := trace.ParseTraceState(string(state)); err == nil {
			s.parent = s.parent.WithTraceState(parsed)
		}
	}
	return s
}

// AppendUntraced appends the header line by which a backend learns that a new trace has no spans.
func (s *Start) AppendUntraced(dst []byte) []byte {
	return appendTraceparent(dst, s.id, newSpanID(), false)
}

// A Request makes the spans of one request. It belongs to the goroutine that serves it.
type Request struct {
	tracer   *Tracer
	span     trace.Span
	ctx      context.Context // of the span
	admitted trace.Span      // nil before and after the admission
	within   context.Context // of the admission, if there is one
	exchange trace.Span      // that is under way
	lines    []byte          // that name the request to backends
}

// Begin begins the span of a request that is traced. The lines are header lines that name it to backends.
func (t *Tracer) Begin(s Start, started time.Time, lines []byte) *Request {
	r := &Request{tracer: t, lines: append([]byte(nil), lines...)}
	ctx := context.WithValue(context.WithValue(context.Background(), chosen{}, s.id), tracerKey{}, t)
	ctx = outbound.WithTrace(ctx,
		func(over http.RoundTripper) http.RoundTripper { return t.Transport(over, DoNotPropagate) })
	if s.HasParent {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	r.ctx, r.span = t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(started))
	return r
}

// AddLines adds header lines that name the request to backends.
func (r *Request) AddLines(lines []byte) { r.lines = append(r.lines, lines...) }

// Names are the header lines that name the request to backends, without its place in the trace.
func (r *Request) Names() []byte { return r.lines }

// Trace names the span.
func (r *Request) Trace() telemetry.Trace {
	c := r.span.SpanContext()
	return telemetry.Trace{ID: c.TraceID(), Span: c.SpanID(), Sampled: true}
}

// Lines are the header lines by which a backend learns of the request itself, and of no question within it.
func (r *Request) Lines() []byte { return r.tell(r.span) }

func (r *Request) tell(span trace.Span) []byte {
	return appendSpan(append([]byte(nil), r.lines...), span)
}

// Context is the context of what is done for the request.
func (r *Request) Context() context.Context {
	if r.admitted != nil {
		return r.within
	}
	return r.ctx
}

// BeginExchange begins the span of an exchange with a backend, and returns the header lines by which the backend
// learns of it.
func (r *Request) BeginExchange(method string) []byte {
	r.exchange = r.tracer.ask(r.ctx, method)
	return r.tell(r.exchange)
}

// EndExchange ends the span of the exchange.
func (r *Request) EndExchange(e *Exchange) {
	if r.exchange != nil {
		e.end(r.exchange)
		r.exchange = nil
	}
}

// A Verdict is the decision of a policy.
type Verdict struct{ Policy, Binding, Verdict string }

// BeginAdmission begins the span of the admission.
func (r *Request) BeginAdmission() {
	r.EndAdmission()
	r.within, r.admitted = r.tracer.tracer.Start(r.ctx, "admission")
}

// Decided adds the verdict of a policy to the span of the admission, which the first one begins if nothing else has.
func (r *Request) Decided(v Verdict, cost int64) {
	if r.admitted == nil {
		r.BeginAdmission()
	}
	attributes := []attribute.KeyValue{
		attribute.String("gateway.policy", v.Policy), attribute.String("gateway.verdict", v.Verdict),
		attribute.Int64("gateway.cost", cost),
	}
	if v.Binding != "" {
		attributes = append(attributes, attribute.String("gateway.binding", v.Binding))
	}
	r.admitted.AddEvent("policy", trace.WithAttributes(attributes...))
}

// EndAdmission ends the span of the admission, if there is one.
func (r *Request) EndAdmission() {
	if r.admitted != nil {
		r.admitted.End()
		r.admitted, r.within = nil, nil
	}
}

// End ends the span of the request with what is known of it now.
func (r *Request) End(o *telemetry.Record) {
	scheme, route := o.Request.Scheme, o.Resource.Template
	r.EndAdmission()
	if r.exchange != nil {
		r.exchange.End()
	}
	name := strings.Clone(o.Request.Method)
	if name == "" {
		name = "HTTP"
	}
	if route != "" {
		name += " " + route
	}
	r.span.SetName(name)
	text := func(key, value string) {
		if value != "" {
			r.span.SetAttributes(attribute.String(key, strings.Clone(value))) // a span outlives its request
		}
	}
	text("http.request.method", o.Request.Method)
	text("http.route", route)
	text("url.path", o.Request.Path)
	text("url.scheme", scheme)
	host, port := serverOf(scheme + "://" + o.Request.Host)
	text("server.address", host)
	if host != "" {
		r.span.SetAttributes(attribute.Int("server.port", port))
	}
	if o.Client.IsValid() {
		text("client.address", o.Client.String())
	}
	text("user_agent.original", o.Request.UserAgent)
	text("network.protocol.version", o.Request.Version)
	r.span.SetAttributes(attribute.Int64("http.request.body.size", o.Usage.Received),
		attribute.Int64("http.response.body.size", o.Usage.Sent))
	if o.Outcome.Code > 0 {
		r.span.SetAttributes(attribute.Int("http.response.status_code", o.Outcome.Code))
	}
	text("http.request.header.x-request-id", o.ID)
	text("user.name", o.User)
	text("gateway.verb", o.Resource.Verb)
	text("gateway.group", o.Resource.Group)
	text("gateway.resource", o.Resource.Resource)
	text("gateway.subresource", o.Resource.Subresource)
	text("gateway.namespace", o.Resource.Namespace)
	text("gateway.name", o.Resource.Name)
	text("gateway.route", o.Routing.Route)
	text("gateway.rule", o.Routing.Rule)
	text("gateway.listener", o.Routing.Listener)
	text("gateway.upstream", o.Routing.Upstream)
	text("gateway.configuration.hash", o.InForce.Configuration)
	text("gateway.policies.hash", o.InForce.Policies)
	text("gateway.reason", o.Outcome.Reason)
	text("gateway.policy", o.Outcome.Policy)
	text("gateway.binding", o.Outcome.Binding)
	text("gateway.field", o.Outcome.Field)
	if o.Outcome.Code >= 500 || o.Outcome.Code == 0 {
		text("error.type", strconv.Itoa(o.Outcome.Code))
		r.span.SetStatus(codes.Error, "")
	}
	r.span.End()
}
