// Package message has the messages of HTTP, whatever protocol carries them: the heads of requests and of
// answers, which it reads strictly, and the streams that their bodies are. Its Response is the one form
// of an answer, from the backend's connection to the client's.
//
// The one form of a head is the text of HTTP/1.1: a protocol that sends heads in another form makes that
// text of them first, so that there is one reader. How a body is framed is the protocol's affair.
//
// One reading only: whatever two parsers could take in two ways is refused, so
// that the peer on the other side of the gateway cannot see another message
// than the gateway judged. The package works on bytes that the caller has
// read; it neither reads from nor writes to connections and allocates nothing
// per message once its values are warm.
package message

import "fmt"

// Error is the refusal of a message. For a request Code is the HTTP status to
// answer with; for an answer of a backend the code is always 502.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Flaw is a fault in the framing of a message. The client is to blame if it is a request, the
// backend if it is an answer.
type Flaw struct {
	Message string
	// Code is the status of a request that has the flaw.
	Code int
}

// OfRequest returns the refusal of a request that has the flaw.
func (f *Flaw) OfRequest() *Error { return &Error{Code: f.Code, Message: f.Message} }

// OfAnswer returns the refusal of an answer that has the flaw: its backend is at fault.
func (f *Flaw) OfAnswer() *Error { return &Error{Code: 502, Message: f.Message} }

func badRequest(format string, args ...any) error {
	return &Error{Code: 400, Message: fmt.Sprintf(format, args...)}
}

func badAnswer(format string, args ...any) error {
	return &Error{Code: 502, Message: fmt.Sprintf(format, args...)}
}
