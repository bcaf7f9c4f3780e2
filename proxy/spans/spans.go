// Package spans makes the spans of one request that is traced, as the steps of its way come to pass.
package spans

import (
	"bytes"
	"errors"

	"github.com/admission-gateway/gateway/internal/http1/upstream"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
)

// Spans are the spans of a request. It implements storage.Tracer.
type Spans struct {
	*tracing.Request
	path []byte // of the exchange under way

	scheme, route string
}

// Know says more of the request: the scheme by which it came, and its path as a template, or "".
func (s *Spans) Know(scheme, route string) { s.scheme, s.route = scheme, route }

// Finish ends the span of the request.
func (s *Spans) Finish(r *telemetry.Record) { s.Request.End(r, s.scheme, s.route) }

// New returns the spans below the one of a request.
func New(r *tracing.Request) *Spans { return &Spans{Request: r} }

// Begin implements storage.Tracer.
func (s *Spans) Begin(method, target []byte) []byte {
	path, _, _ := bytes.Cut(target, []byte("?"))
	s.path = append(s.path[:0], path...)
	return s.BeginExchange(string(method))
}

// End implements storage.Tracer.
func (s *Spans) End(b *storage.Backend, code int, err error) {
	e := tracing.Exchange{Upstream: b.Name, URL: b.URL + string(s.path)}
	if err == nil {
		e.Code = code
	} else {
		e.Failure = failureOf(err)
	}
	s.EndExchange(&e)
}

// failureOf returns why there was no answer, in a word.
func failureOf(err error) string {
	var failed *upstream.Error
	if errors.As(err, &failed) {
		return failed.Kind.String()
	}
	return "_OTHER"
}
