// Package wire reads HTTP/1 messages strictly: the heads of requests and of
// answers, and chunked bodies.
//
// One reading only: whatever two parsers could take in two ways is refused, so
// that the peer on the other side of the gateway cannot see another message
// than the gateway judged. The package works on bytes that the caller has
// read; it neither reads from nor writes to connections and allocates nothing
// per message once its values are warm.
package wire

import "fmt"

// Error is the refusal of a message. For a request Code is the HTTP status to
// answer with; for an answer of a backend the code is always 502.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

func badRequest(format string, args ...any) *Error {
	return &Error{Code: 400, Message: fmt.Sprintf(format, args...)}
}

func badAnswer(format string, args ...any) *Error {
	return &Error{Code: 502, Message: fmt.Sprintf(format, args...)}
}
