package storage

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/clock"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// A Retry says when a request is sent again, beside what an upstream.Client does by itself.
type Retry struct {
	// Codes are those of answers after which it is. It is after a failure to get an answer too, unless a request that
	// changes something may have reached the backend.
	Codes []int
	// Attempts are how often it is sent again at most, Backoff how long the first pause lasts. Each further one lasts
	// twice as long.
	Attempts int
	Backoff  time.Duration
}

// defaultBackoff and maxBackoff bound the pauses between attempts.
const (
	defaultBackoff = 25 * time.Millisecond
	maxBackoff     = 10 * time.Second
)

// do makes the call by one of the clients of the backend, again if the route asks for that.
func (e *Exchanges) do(b *Backend, by *upstream.Client, answer *message.Response) error {
	err := e.attempt(b, by, answer)
	if e.Limits == nil || e.Limits.Retry == nil || e.call.Upload != nil || e.call.Upgrade != nil {
		return err
	}
	for n := range e.Limits.Retry.Attempts {
		pause := e.Limits.Retry.pause(n)
		if !e.isRepeated(answer, err) || !e.mayPause(pause) || !by.MayRetry() {
			return err
		}
		answer.Discard()
		if err := e.Client.Sleep(pause); err != nil {
			return err
		}
		makeHead(e, &e.forward) // a trace has a step for each attempt
		e.call.Head = e.memory().head
		err = e.attempt(b, by, answer)
	}
	return err
}

// isRepeated reports whether the outcome of an attempt asks for another one.
func (e *Exchanges) isRepeated(answer *message.Response, err error) bool {
	if err == nil {
		return slices.Contains(e.Limits.Retry.Codes, answer.Status())
	}
	failure, is := errors.AsType[*upstream.Error](err)
	if !is || failure.Kind != upstream.Unreachable && failure.Kind != upstream.TooSlow && failure.Kind != upstream.Broken {
		return false
	}
	return !failure.Sent || e.call.Idempotent || isIdempotent(str(e.method))
}

// isIdempotent reports whether a request of the method does nothing more if it arrives twice (RFC 9110, 9.2.2).
func isIdempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// pause returns how long the pause after an attempt is.
func (r *Retry) pause(n int) time.Duration {
	first := r.Backoff
	if first <= 0 {
		first = defaultBackoff
	}
	return max(min(first<<min(n, 16), maxBackoff), r.Backoff)
}

// mayPause reports whether there is time for a pause.
func (e *Exchanges) mayPause(d time.Duration) bool {
	by := e.earliest()
	return by.IsZero() || time.Now().Add(d).Before(by)
}

// earliest returns when the first of the deadlines passes; zero for none.
func (e *Exchanges) earliest() time.Time {
	if by := e.call.Deadline; e.bound.IsZero() || !by.IsZero() && by.Before(e.bound) {
		return by
	}
	return e.bound
}

// attempt makes the call once.
func (e *Exchanges) attempt(b *Backend, by *upstream.Client, answer *message.Response) error {
	if e.Limits != nil {
		e.call.Timeouts = e.Limits.Timeouts
	}
	if e.call.IsCall = e.Head.IsGRPC(); e.call.IsCall {
		e.call.Timeouts = upstream.RequestTimeouts{Answer: lastingCall, Body: lastingCall}
	}
	began := clock.After(e.Started)
	e.call.Start = began
	var attemptBy time.Time
	if e.Limits != nil && e.Limits.AttemptTimeout > 0 && e.call.Upgrade == nil {
		e.call.Timeouts.Answer, attemptBy = e.Limits.AttemptTimeout, began.Add(e.Limits.AttemptTimeout)
	}
	if e.call.Upgrade == nil {
		e.call.Deadline = e.earliest()
	}
	e.call.Client = e.Client
	err := by.Do(&e.call, answer)
	took := time.Since(began)
	e.Took += took
	if b.Measured != nil {
		b.Measured(e.method, answer.Status(), err, took)
	}
	if e.Tracer != nil {
		e.Tracer.End(b, answer.Status(), err)
	}
	if err == nil && answer.IsStream() {
		boundStream(answer, e.bound, attemptBy)
	}
	return err
}

// boundStream has an answer that is still on its way end when the first of two times is there; zero is none.
func boundStream(answer *message.Response, by, attemptBy time.Time) {
	if by.IsZero() || !attemptBy.IsZero() && attemptBy.Before(by) {
		by = attemptBy
	}
	if by.IsZero() {
		return
	}
	s := &boundedStream{Stream: answer.Stream()}
	s.timer = time.AfterFunc(time.Until(by), func() {
		s.passed.Store(true)
		s.Interrupt()
	})
	answer.SetStream(s)
}

// boundedStream is an answer that the route gives a time.
type boundedStream struct {
	message.Stream
	timer  *time.Timer
	passed atomic.Bool
}

// errTooLong ends an answer that takes longer than the route gives it.
var errTooLong = errors.New("the answer took longer than the route gives it")

func (s *boundedStream) why(err error) error {
	if err != nil && s.passed.Load() {
		return errTooLong
	}
	return err
}

// Wait implements message.Stream.
func (s *boundedStream) Wait() error { return s.why(s.Stream.Wait()) }

// ReadReady implements message.Stream.
func (s *boundedStream) ReadReady(p []byte) (int, error) {
	n, err := s.Stream.ReadReady(p)
	return n, s.why(err)
}

// Read implements io.Reader.
func (s *boundedStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	return n, s.why(err)
}

// Close implements io.Closer.
func (s *boundedStream) Close() error {
	s.timer.Stop()
	return s.Stream.Close()
}
