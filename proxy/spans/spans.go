// Package spans makes the spans of one traced request as its steps begin and end.
package spans

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Spans are the spans of a request. It implements storage.Tracer.
type Spans struct {
	*tracing.Request
	path  []byte // of the exchange under way
	redis *tracing.Redis
}

// Finish ends the span of the request.
func (s *Spans) Finish(r *telemetry.Record) { s.Request.End(r) }

// New returns the spans below the one of a request. The Redis is the one that it may ask.
func New(r *tracing.Request, redis *tracing.Redis) *Spans { return &Spans{Request: r, redis: redis} }

// Context is the context of the work for a request; nil are the spans of one that is not traced.
func (s *Spans) Context() context.Context {
	if s == nil {
		return context.Background()
	}
	return s.Request.Context()
}

// Limited makes a span of a decision on limits that gateways share, which began at a time.
func (s *Spans) Limited(began time.Time, err error) {
	s.AskedRedis(s.redis, "EVALSHA", began, FailureOf(err))
}

// Locked implements storage.Tracer.
func (s *Spans) Locked(began time.Time, err error) {
	s.AskedRedis(s.redis, "SET", began, FailureOf(err))
}

// Unlocked implements storage.Tracer.
func (s *Spans) Unlocked(began time.Time) { s.AskedRedis(s.redis, "EVALSHA", began, "") }

// Begin implements storage.Tracer.
func (s *Spans) Begin(method, target []byte) []byte {
	path, _, _ := bytes.Cut(target, []byte("?"))
	s.path = append(s.path[:0], path...)
	return s.BeginExchange(string(method))
}

// End implements storage.Tracer.
func (s *Spans) End(b *storage.Backend, code int, err error) {
	e := tracing.Exchange{Upstream: b.Name, URL: b.URL + string(s.path), Failure: FailureOf(err)}
	if err == nil {
		e.Code = code
	}
	s.EndExchange(&e)
}

// Asked ends the span of a question that the gateway itself asked a backend.
func Asked(q *tracing.ClientSpan, b *storage.Backend, path string, code int, err error) {
	if q == nil {
		return
	}
	path, _, _ = strings.Cut(path, "?")
	e := tracing.Exchange{Upstream: b.Name, URL: b.URL + path, Failure: FailureOf(err)}
	if err == nil {
		e.Code = code
	}
	q.End(&e)
}

// FailureOf returns why there was no answer, in a word; "" if there was one.
func FailureOf(err error) string {
	var failed *upstream.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failed):
		return failed.Kind.String()
	case errors.Is(err, shared.ErrTimeout):
		return "timeout"
	}
	return tracing.FailureOf(err)
}
