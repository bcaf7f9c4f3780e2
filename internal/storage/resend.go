package storage

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/clock"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// This file decides what may be sent again, and what the answers 404, 409, 410 and 412 mean. No other code does.
//
// Whether a request may arrive twice is a property of the client's request, and not of the method that the backend
// gets: the PUT that the gateway makes of a PATCH must not be carried out twice because PUT is idempotent. A write
// that the gateway has judged, or that names the version that it replaces, is never repeated once the backend may
// have carried it out. Then the outcome is unknown until a read resolves it.
//
// upstream.Client sends a request again by itself too: a safe one after a connection that ended, and any other one
// only if the backend has surely not processed it, which is what unsent means here.

// A Nature says what it means if a request is carried out twice.
type Nature uint8

// The natures of requests.
const (
	// Once is a write that the gateway has judged, or whose client names a precondition. A second one would be
	// carried out on another version than was judged, or be refused because of the first one.
	Once Nature = iota
	// Safe requests change nothing.
	Safe
	// Repeatable requests leave the same behind, however often they are carried out: a PUT or DELETE that the gateway
	// passes on as the client sent it, without a precondition.
	Repeatable
	// Unrepeatable requests are a POST or PATCH that the gateway passes on as the client sent it.
	Unrepeatable
	natures
)

// natureOf returns the nature of a request that the gateway does not judge.
func natureOf(method []byte, head *message.Head) Nature {
	switch string(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return Safe
	}
	switch {
	case head.Has(message.FieldIfMatch), head.Has(message.FieldIfNoneMatch), head.Has(message.FieldIfUnmodifiedSince):
		return Once
	case head.Has(message.FieldMethodOverride): // the method may be another one
		return Unrepeatable
	}
	switch string(method) {
	case http.MethodPut, http.MethodDelete:
		return Repeatable
	}
	return Unrepeatable
}

// An ending is how one attempt ended.
type ending uint8

const (
	// final is an answer, or a failure, that another attempt would not change.
	final ending = iota
	// unsent: no byte has left, or the backend says that it has not processed the request.
	unsent
	// lost: the backend may have carried the request out, and there is no whole answer.
	lost
	// unusable: the same, and the answer is one that the gateway cannot use.
	unusable
	// refused: an answer below 500 that the route names. The backend has not carried the request out.
	refused
	// failed: an answer from 500 on that the route names. The backend may have carried the request out.
	failed
	// indefinite: 404, 409, 410 or 412 in answer to a repeated request. The first one may be the reason.
	indefinite
	endings
)

// A sequel is how a request goes on after an attempt.
type sequel uint8

const (
	// stands: the ending is the client's answer.
	stands sequel = iota
	// again: the request is sent again, if the route allows another attempt.
	again
	// unknown: whether the request was carried out has to be found out.
	unknown
)

// sequels is the table of all that may be sent again.
var sequels = [natures][endings]sequel{
	Safe:         {unsent: again, lost: again, refused: again, failed: again},
	Repeatable:   {unsent: again, lost: again, refused: again, failed: again, indefinite: unknown},
	Unrepeatable: {unsent: again, refused: again, failed: again, indefinite: unknown},
	Once:         {unsent: again, lost: unknown, unusable: unknown, refused: again, failed: unknown, indefinite: unknown},
}

// endingOf returns how an attempt ended. The codes are those after which the route asks for another attempt.
// isRepeated says that an attempt before may have been carried out.
func endingOf(answer *message.Response, err error, codes []int, isRepeated bool) ending {
	if err == nil {
		code := answer.Status()
		switch isNamed := slices.Contains(codes, code); {
		case isRepeated && saysNothing(code):
			return indefinite
		case isNamed && code >= http.StatusInternalServerError:
			return failed
		case isNamed:
			return refused
		}
		return final
	}
	failure, is := errors.AsType[*upstream.Error](err)
	if !is {
		return final
	}
	switch failure.Kind {
	case upstream.Unreachable, upstream.TooSlow, upstream.Broken:
		if !failure.Sent {
			return unsent
		}
		return lost
	case upstream.Malformed, upstream.TooLarge, upstream.NoMemory:
		if failure.Sent {
			return unusable
		}
	}
	return final
}

// saysNothing reports whether a code in answer to a repeated request may come of the request's first arrival.
func saysNothing(code int) bool {
	switch code {
	case http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed:
		return true
	}
	return false
}

// An UnknownOutcome is the failure of a request that the backend may have carried out.
type UnknownOutcome struct {
	// Err says why there is no answer. It is nil if the backend answered by a code that leaves the outcome open: that
	// answer is in Exchanges.Response.
	Err error
	// code is that of the answer.
	code int
}

// NewUnknownAnswer returns the failure of a request whose answer leaves the outcome open.
func NewUnknownAnswer(code int) *UnknownOutcome { return &UnknownOutcome{code: code} }

// Error implements error.
func (u *UnknownOutcome) Error() string {
	const advice = ": whether the request was carried out is not known; read the object before you send it again"
	if u.Err != nil {
		return u.Err.Error() + advice
	}
	return "the backend gave no answer to the request, and then refused to carry it out again (" + http.StatusText(u.code) + ")" + advice
}

// Unwrap returns why there is no answer.
func (u *UnknownOutcome) Unwrap() error { return u.Err }

// As gives errors.As the Status, which has no Retry-After: clients that obey it would send the request again.
func (u *UnknownOutcome) As(target any) bool {
	s, ok := target.(**status.Error)
	if ok {
		*s = status.Timeout(u.Error(), 0)
	}
	return ok
}

// Unresolved returns what the client learns if no read can resolve the outcome: the backend's own answer, if there is
// one and the request was sent once.
func (u *UnknownOutcome) Unresolved() error {
	if u.Err == nil && !saysNothing(u.code) {
		return nil
	}
	return u
}

// A Refusal is what an answer that refuses a write means.
type Refusal uint8

// The refusals.
const (
	// NoRefusal: the answer is the client's.
	NoRefusal Refusal = iota
	// Outdated: the gateway pinned the write to a version that is no longer stored. It has to be admitted again.
	Outdated
	// NameTaken: another object has the name of one that is created.
	NameTaken
	// Absent: there is no such object.
	Absent
)

// Refused returns what the code of an answer to the write means. The write was carried out neither by this attempt
// nor by one before: after an attempt whose outcome is unknown there is no other one.
func (w *Write) Refused(code int) Refusal {
	creates := w.Info.Verb == resource.VerbCreate
	switch pin := w.Existing.Pin; code {
	case http.StatusPreconditionFailed:
		switch {
		case pin == PinnedToNothing && creates:
			return NameTaken
		case pin == PinnedByETag, pin == PinnedToNothing, pin == PinnedByField:
			return Outdated
		}
	case http.StatusConflict:
		switch {
		case creates && w.HasGeneratedName:
			return NameTaken
		case creates:
		case pin == PinnedByObject, pin == PinnedByField:
			return Outdated
		}
	case http.StatusNotFound, http.StatusGone:
		return Absent
	}
	return NoRefusal
}

// IsRepeatable reports whether the client's own write leaves the same behind if it is carried out twice: it names no
// version and is neither a create nor a JSON patch. If the object is as such a write would leave it, the write has
// succeeded, whoever wrote the object.
func (w *Write) IsRepeatable() bool {
	head := w.Exchanges.Head
	if w.IsPinned || head.Has(message.FieldIfMatch) || head.Has(message.FieldIfNoneMatch) ||
		head.Has(message.FieldIfUnmodifiedSince) {
		return false
	}
	switch w.Info.Verb {
	case resource.VerbUpdate:
		return true
	case resource.VerbPatch:
		return w.PatchType == MergePatch || w.PatchType == FormPatch
	case resource.VerbDelete:
		return w.Options == nil || w.Options.Preconditions == nil
	}
	return false
}

// defaultBackoff and maxBackoff bound the pauses between attempts.
const (
	defaultBackoff = 25 * time.Millisecond
	maxBackoff     = 10 * time.Second
)

// do makes the call by one of the clients of the backend, again if the route asks for that and the request may arrive
// twice. The error is an *UnknownOutcome if the backend may have carried it out and it may not.
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

// withoutAdvice returns the failure of a request without the advice to send it again, if it may have arrived and
// changes something.
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

// boundStream has an answer that is still on its way end when the first of two times is there; zero is none. If that
// is when the deadline of a call passes, it ends as a call does whose deadline has passed.
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
