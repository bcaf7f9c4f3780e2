package upstream

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
)

// Kind says what went wrong with an exchange.
type Kind uint8

// The kinds of failure.
const (
	// Unreachable: no connection could be made.
	Unreachable Kind = iota
	// Busy: all connections were in use for as long as a request waits.
	Busy
	// TooSlow: a deadline passed.
	TooSlow
	// Broken: the connection ended before the answer was complete.
	Broken
	// Malformed: the answer is not HTTP as this gateway reads it.
	Malformed
	// TooLarge: the answer had to be read whole and is larger than allowed.
	TooLarge
	// CircuitOpen: the backend failed repeatedly, so that it was not asked.
	CircuitOpen
	// NoMemory: Request.Memory refused what the answer takes.
	NoMemory
	// ClientFailed: Request.Upload broke off. The cause says why.
	ClientFailed
	// Abandoned: Request.Client left. The exchange was cancelled, if it had begun.
	Abandoned
)

// String returns the name of the kind, as used in metrics.
func (k Kind) String() string {
	return [...]string{"Unreachable", "Busy", "TooSlow", "Broken", "Malformed", "TooLarge", "CircuitOpen", "NoMemory",
		"ClientFailed", "Abandoned"}[k]
}

// Code is the HTTP status that a client is answered with.
func (k Kind) Code() int {
	switch k {
	case Unreachable, Busy, CircuitOpen, NoMemory:
		return 503
	case TooSlow:
		return 504
	case Abandoned:
		return status.ClientClosedRequest
	}
	return 502
}

// Error is a failed exchange. Its message is fit for clients; the cause, with
// addresses of backends in it, is for logs.
type Error struct {
	Kind Kind
	// RetryAfter, in seconds, is set for Unreachable, Busy, TooSlow, CircuitOpen and NoMemory.
	RetryAfter int
	// Sent is set if the request, or a part of it, may have reached the backend.
	Sent bool
	// Ended is closed when the exchange has ended after all, by an answer or with its connection. It is nil if the
	// exchange is over, or is no longer watched. It is set for TooSlow alone, if the request says RunsOn.
	Ended <-chan struct{}
	Cause error

	message string
	retry   retrySafety
}

// retrySafety says whether the same request may be sent once more.
type retrySafety uint8

const (
	never retrySafety = iota
	notSent
	noAnswer // and no byte of one: harmless to repeat if the request is a read
	refused  // the backend says that it has not processed it
	byHTTP1  // and that it takes it by HTTP/1.1 alone
)

func (e *Error) Error() string { return e.message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status is the answer to the client (ERR-4).
func (e *Error) Status() *status.Error {
	if e.Kind == ClientFailed {
		return status.From(e.Cause)
	}
	switch e.Kind.Code() {
	case 503:
		return status.ServiceUnavailable(e.message, e.RetryAfter)
	case 504:
		return status.Timeout(e.message, e.RetryAfter)
	case status.ClientClosedRequest:
		return status.ClientLeft()
	}
	return status.BadGateway(e.message)
}

// As gives errors.As the Status, so that status.From knows the error.
func (e *Error) As(target any) bool {
	s, ok := target.(**status.Error)
	if ok {
		*s = e.Status()
	}
	return ok
}

// dialError marks errors of making a connection.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

func newError(kind Kind, sent bool, cause error) *Error {
	e := &Error{Kind: kind, Sent: sent, Cause: cause}
	switch kind {
	case Unreachable:
		e.message = "the backend cannot be reached"
	case Busy:
		e.message = "all connections to the backend are in use"
	case TooSlow:
		e.message = "the backend did not answer in time"
	case Broken:
		e.message = "the backend closed the connection before its answer was complete"
		if reset, is := errors.AsType[*h2.ResetError](cause); is {
			e.message = fmt.Sprintf("the backend ended the request by %s before its answer was complete", reset.Code)
		}
	case Malformed:
		e.message = "the backend gave an answer that is not valid HTTP"
		var w *message.Error
		if errors.As(cause, &w) {
			e.message = fmt.Sprintf("the backend gave an answer that is not valid HTTP: %s", w.Message)
		}
	case TooLarge:
		e.message = "the backend gave an answer that is too large to be read whole"
	case ClientFailed:
		e.message = "the request was not complete"
	case Abandoned:
		e.message = "the client left before the backend had answered"
	case NoMemory:
		e.message = "the gateway has no memory now for the answer of the backend"
	}
	return e
}

// malformed is the failure of an answer that is read to its flaw.
func malformed(text string) *Error {
	return newError(Malformed, true, &message.Error{Code: 502, Message: text})
}

// refusedBy is the failure of a request that the open circuit does not let pass.
func refusedBy(open *circuit.OpenError) *Error {
	e := newError(CircuitOpen, false, open)
	e.RetryAfter = max(1, int((open.Wait+time.Second-1)/time.Second))
	e.message = fmt.Sprintf("the backend failed to answer %d times in a row: it is asked again after %d seconds", open.Failures, e.RetryAfter)
	return e
}

// setRetryAfter completes an error that a client is to come again after.
func (e *Error) setRetryAfter(c *Config) {
	if code := e.Kind.Code(); e.RetryAfter != 0 || code != 503 && code != 504 {
		return
	}
	e.RetryAfter = c.RetryAfter
	if e.Kind == Busy && c.Overloaded != nil {
		e.RetryAfter = c.Overloaded(time.Now())
	}
}

// isMalformed reports whether the bytes that the backend sent caused an error.
func isMalformed(err error) bool {
	var w *message.Error
	return errors.As(err, &w)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// ioFailed is the failure of an error of reading or writing.
func ioFailed(sent bool, err error) *Error {
	switch {
	case isMalformed(err):
		return newError(Malformed, sent, err)
	case isTimeout(err):
		return newError(TooSlow, sent, err)
	case errors.Is(err, h2conn.ErrNoMemory):
		return newError(NoMemory, sent, err)
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return newError(Broken, sent, err)
}
