package storage

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/clock"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// A Retry says when a request is sent again, beside what an upstream.Client does by itself, and as far as it may arrive twice.
type Retry struct {
	// Codes are those of answers after which it is. It is after a failure to get an answer too.
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

// do makes the call by one of the clients of the backend, again if the route asks for that and the request may arrive twice.
// The error is an *UnknownOutcome if the backend may have carried it out and it may not.
func (e *Exchanges) do(b *Backend, by *upstream.Client, answer *message.Response) error {
	var asked *Retry
	if e.Limits != nil && e.try.call.Upload == nil && e.try.call.Upgrade == nil {
		asked = e.Limits.Retry
	}
	err := e.attempt(b, by, answer)
	if err == nil && asked == nil {
		return nil
	}
	for n, isRepeated := 0, false; ; n++ {
		ending := endingOf(answer, err, asked.codes(), isRepeated)
		switch next := sequels[e.try.nature][ending]; {
		case next == unknown:
			return e.unknown(answer, err)
		case next == stands, asked == nil, n == asked.Attempts, !e.mayPause(asked.pause(n)), !by.MayRetry():
			return e.withoutAdvice(err)
		}
		isRepeated = isRepeated || ending == lost || ending == failed
		answer.Discard()
		if err := e.Client.Sleep(asked.pause(n)); err != nil {
			return err
		}
		makeHead(e, &e.try.forward) // a trace has a step for each attempt
		e.try.call.Head = e.memory().head
		err = e.attempt(b, by, answer)
	}
}

// unknown returns the failure of a request that may have been carried out.
func (e *Exchanges) unknown(answer *message.Response, err error) error {
	if err != nil {
		return &UnknownOutcome{Err: err}
	}
	return NewUnknownAnswer(answer.Status())
}

// withoutAdvice returns the failure of a request without the advice to send it again, if it may have arrived and changes
// something.
func (e *Exchanges) withoutAdvice(err error) error {
	if err == nil || e.try.nature == Safe {
		return err
	}
	if failure, is := errors.AsType[*upstream.Error](err); is && failure.Sent {
		failure.RetryAfter = 0
	}
	return err
}

// codes returns those after which the route asks for another attempt.
func (r *Retry) codes() []int {
	if r == nil {
		return nil
	}
	return r.Codes
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
	return sooner(sooner(e.try.call.Deadline, e.bound), e.callBy)
}

// sooner returns the earlier one of two times; zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// attempt makes the call once.
func (e *Exchanges) attempt(b *Backend, by *upstream.Client, answer *message.Response) error {
	if e.Limits != nil {
		e.try.call.Timeouts = e.Limits.Timeouts
	}
	if e.try.call.IsCall {
		e.try.call.Timeouts = upstream.RequestTimeouts{Answer: lastingCall, Body: lastingCall}
	}
	began := clock.After(e.Started)
	e.try.call.Start = began
	var attemptBy time.Time
	if e.Limits != nil && e.Limits.AttemptTimeout > 0 && e.try.call.Upgrade == nil {
		e.try.call.Timeouts.Answer, attemptBy = e.Limits.AttemptTimeout, began.Add(e.Limits.AttemptTimeout)
	}
	if e.try.call.Upgrade == nil {
		e.try.call.Deadline = e.earliest()
	}
	e.try.call.Client = e.Client
	err := by.Do(&e.try.call, answer)
	if err != nil {
		e.noteAbandoned(err)
	}
	took := time.Since(began)
	e.Took += took
	if b.Measured != nil {
		b.Measured(e.try.method, answer.Status(), err, took)
	}
	if e.Tracer != nil {
		e.Tracer.End(b, answer.Status(), err)
	}
	if err == nil && answer.IsStream() {
		boundStream(answer, sooner(e.bound, e.callBy), attemptBy, e.callBy)
	}
	return err
}

// boundStream has an answer that is still on its way end when the first of two times is there; zero is none. If that is when
// the deadline of a call passes, it ends as a call does whose deadline has passed.
func boundStream(answer *message.Response, by, attemptBy, callBy time.Time) {
	if by = sooner(by, attemptBy); by.IsZero() {
		return
	}
	s := &boundedStream{Stream: answer.Stream(), isCall: by.Equal(callBy)}
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
	isCall bool // and the time is the deadline of a call
	isLate bool // the call has ended for that
}

// errTooLong ends an answer that takes longer than the route gives it.
var errTooLong = errors.New("the answer took longer than the route gives it")

func (s *boundedStream) why(err error) error {
	switch {
	case err == nil || err == io.EOF || !s.passed.Load():
		return err
	case s.isCall:
		s.isLate = true
		return io.EOF
	}
	return errTooLong
}

// Trailers implements message.Stream.
func (s *boundedStream) Trailers() []message.Header {
	if s.isLate {
		return deadlineExceeded
	}
	return s.Stream.Trailers()
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
