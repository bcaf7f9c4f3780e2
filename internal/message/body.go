package message

import (
	"errors"
	"io"
)

// ErrInterrupted is the error of a body whose reader was interrupted.
var ErrInterrupted = errors.New("the stream was interrupted")

// An Upload is the body of a request that is sent on while it comes. One goroutine reads it;
// Interrupt may be called from any other.
type Upload interface {
	// Length returns the length of the body in bytes; -1 if it is not known.
	Length() int64
	// Read waits for bytes and reads what has arrived; io.EOF comes after the last byte of a complete
	// body. Any other error is ErrInterrupted, or says what the client did wrong.
	io.Reader
	// Interrupt makes the Read in progress and those to come return.
	Interrupt()
	// Trailers returns the fields that came behind the body, once Read has returned io.EOF; nil if
	// there are none, or the protocol forwards none.
	Trailers() []Header
}
