package tracing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// An Exchange says what an exchange with a server was.
type Exchange struct {
	// Upstream is the backend's name, or empty. URL is the request's without a query.
	Upstream, URL string
	Code          int    // 0 if there was no answer
	Failure       string // why, in a word
}

// end ends the span of the exchange.
func (e *Exchange) end(span trace.Span) {
	if e.Upstream != "" {
		span.SetAttributes(attribute.String("gateway.upstream", e.Upstream))
	}
	span.SetAttributes(attribute.String("url.full", e.URL))
	if address, port := serverOf(e.URL); address != "" {
		span.SetAttributes(attribute.String("server.address", address), attribute.Int("server.port", port))
	}
	if e.Code > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", e.Code))
	}
	switch {
	case e.Failure != "":
		fail(span, e.Failure)
	case e.Code >= 400:
		fail(span, strconv.Itoa(e.Code))
	}
	span.End()
}

// fail says why a span is one of an error, in a word.
func fail(span trace.Span, why string) {
	span.SetAttributes(attribute.String("error.type", why))
	span.SetStatus(codes.Error, "")
}

// FailureOf returns why a question has no answer, in a word.
func FailureOf(err error) string {
	var timed net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout() {
		return "timeout"
	}
	return "_OTHER"
}

// serverOf returns host and port of a URL.
func serverOf(url string) (address string, port int) {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		if scheme == "https" {
			return authority, 443
		}
		return authority, 80
	}
	port, _ = strconv.Atoi(text)
	return host, port
}

// ask begins the span of an exchange.
func (t *Tracer) ask(ctx context.Context, method string) trace.Span {
	_, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", method)))
	return span
}

// tracerKey is the key of the tracer in the context of a request that is traced.
type tracerKey struct{}

// A ClientSpan is the span of what the gateway itself asks a server by HTTP, such as a review of access. Nil is the
// span of nothing.
type ClientSpan struct{ span trace.Span }

// StartClientSpan begins the span of a question that is asked for a request, by the request's context. It returns nil
// if the request is not traced.
func StartClientSpan(ctx context.Context, method string) *ClientSpan {
	t, isTraced := ctx.Value(tracerKey{}).(*Tracer)
	if !isTraced {
		return nil
	}
	return &ClientSpan{t.ask(ctx, method)}
}

// AppendLine appends the header line by which the server learns of the question.
func (q *ClientSpan) AppendLine(dst []byte) []byte {
	if q == nil {
		return dst
	}
	return appendSpan(dst, q.span)
}

// End ends the span.
func (q *ClientSpan) End(e *Exchange) {
	if q != nil {
		e.end(q.span)
	}
}

// A Propagation says whether servers get the trace's headers.
type Propagation bool

// The values of Propagation. Servers of another organization, such as issuers, need not learn of the trace.
const (
	Propagate      Propagation = true
	DoNotPropagate Propagation = false
)

// Transport returns a transport with a span for each request that goes over another one: below the span of the
// request's context, or of a trace of its own if the tracer samples it. A nil tracer returns the transport itself.
func (t *Tracer) Transport(over http.RoundTripper, p Propagation) http.RoundTripper {
	if t == nil {
		return over
	}
	return &transport{t, over, p}
}

type transport struct {
	tracer      *Tracer
	over        http.RoundTripper
	propagation Propagation
}

// RoundTrip implements http.RoundTripper. The span lasts up to the head of the answer.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q := StartClientSpan(r.Context(), r.Method)
	if q == nil {
		s := t.tracer.Look(nil, nil)
		if !s.IsTraced {
			return t.over.RoundTrip(r)
		}
		q = &ClientSpan{t.tracer.ask(context.WithValue(r.Context(), chosen{}, s.id), r.Method)}
	}
	if t.propagation == Propagate {
		r = r.Clone(r.Context()) // which may not be changed
		r.Header.Set("Traceparent", headerOf(q.span))
	}
	e := Exchange{URL: (&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path}).String()}
	answer, err := t.over.RoundTrip(r)
	if err != nil {
		e.Failure = FailureOf(err)
	} else {
		e.Code = answer.StatusCode
	}
	q.End(&e)
	return answer, err
}
