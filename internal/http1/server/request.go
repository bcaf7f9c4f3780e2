package server

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Request is one request of a client, for as long as the handler serves it.
type Request struct {
	Head http1.Head
	// Refusal is the answer to a head that cannot be read in one way only; nil if the head is good. Of a head
	// that is refused Head has at most its target, Host and Origin.
	Refusal *status.Error
	// Memory is the request's share of the memory for all requests.
	Memory memory.Reservation

	conn    *conn
	headEnd int // of the head in the connection's buffer
	body    body
	fate    fate

	headOnly bool // the answer has no body
	answered bool // the answer, or its first part, went out
	// isDetached is set if the head is a copy, so that nothing refers to the connection's buffer.
	isDetached bool
}

// A fate says what becomes of the connection after the answer.
type fate uint8

const (
	keep         fate = iota
	end               // no further request is served
	endLingering      // and the client may still be sending
)

// endAfter ends the connection after the answer.
func (r *Request) endAfter(f fate) { r.fate = max(r.fate, f) }

// Linger makes the connection wait, after the answer that ends it, for a client that goes on
// sending.
func (r *Request) Linger() { r.endAfter(endLingering) }

// Peer returns the other end of the connection.
func (r *Request) Peer() *Peer { return &r.conn.peer }

// Answered reports whether the answer, or its first part, went out.
func (r *Request) Answered() bool { return r.answered }

// Gone reports whether the client has closed the connection.
func (r *Request) Gone() bool { return r.conn.socket.isGone() }

// OnClose calls gone, from another goroutine, when the client closes the connection, until stop is
// called.
func (r *Request) OnClose(gone func()) (stop func()) { return r.conn.onClose(gone) }

// Detach copies the head, and the handler has to look at all of it again. The connection's buffer
// can then serve other requests while this one goes on.
func (r *Request) Detach() {
	_ = r.Head.Parse(bytes.Clone(r.conn.in.buf[:r.headEnd]), r.conn.options) // it is known to be good
	r.isDetached = true
}

// IsDetached reports whether Detach was called.
func (r *Request) IsDetached() bool { return r.isDetached }

// lend gives the connection's buffer to others until the next head is awaited, unless something is
// in it or refers to it.
func (r *Request) lend() {
	if in := &r.conn.in; r.isDetached && in.isUsed() {
		in.giveBack()
	}
}
