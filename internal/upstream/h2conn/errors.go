package h2conn

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/message"
)

// Kind says what is known of a request whose stream failed.
type Kind uint8

// The kinds of failure.
const (
	// NotSent: nothing of the request has left.
	NotSent Kind = iota
	// NotProcessed: the server says that it has not processed the request (RFC 9113, 8.7).
	NotProcessed
	// HTTP1Required: the server has not processed the request, and takes it by HTTP/1.1 alone.
	HTTP1Required
	// Broken: the connection or the stream ended before the answer was complete.
	Broken
	// Malformed: the answer is not one of HTTP/2. The cause is a *message.Error.
	Malformed
)

// Error is how a stream failed.
type Error struct {
	Kind  Kind
	Cause error
}

func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrStopped is the error of a Send after StopSending.
var ErrStopped = errors.New("the request is no longer sent")

// ErrNoMemory is the cause of the end of a stream that would hold more than the budget grants.
var ErrNoMemory = errors.New("there is no memory for what the server sends")

var (
	errSpent   = errors.New("the connection has no further streams")
	errClosed  = errors.New("the connection was closed")
	errSilent  = errors.New("the server did not answer a PING in time")
	errBehind  = errors.New("the server does not read what it asks for")
	errFlooded = errors.New("the server sends too many frames that carry nothing")
)

// goAwayError is the end of a connection by the server.
type goAwayError struct {
	code  http2.ErrCode
	debug string
}

func (e *goAwayError) Error() string {
	if e.debug == "" {
		return fmt.Sprintf("the server ended the connection by %s", e.code)
	}
	return fmt.Sprintf("the server ended the connection by %s: %q", e.code, e.debug)
}

// malformed is the fault of an answer.
func malformed(text string) *message.Error { return &message.Error{Code: 502, Message: text} }
