package server

import (
	"bytes"
)

// An exchange is a request and its answer on a connection of HTTP/1.1, which carries one at a time.
// It implements Exchange, and is made anew for each request.
type exchange struct {
	request Request
	conn    *conn
	headEnd int // of the head in the connection's buffer
	body    bodyState
	size    int            // of a body that was read whole
	upload  *upload        // the body; nil if it is read whole
	account *clientAccount // of the client behind a trusted proxy, if the request is counted for it
	rest    func()         // of the answer, which the handler has left to be sent
	fate    fate

	headOnly bool // the answer has no body
	answered bool // the answer, or its first part, went out
	isHTTP2  bool // the client began with the preface of HTTP/2, which is not served
	// beginsHTTP2 is set if the connection goes on as one of HTTP/2.
	beginsHTTP2 bool
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

// newExchange makes the connection's exchange a new one. Of the one before only memory for the head
// is left.
func (c *conn) newExchange() *exchange {
	x := &c.exchange
	head := x.request.Head
	*x = exchange{} // in place: a literal with the head would be copied
	x.conn, x.request.Head = c, head
	x.request.open(c.server.settings.Load().Memory, &c.peer, x, &c.client)
	return x
}

// endAfter ends the connection after the answer.
func (x *exchange) endAfter(f fate) { x.fate = max(x.fate, f) }

// Linger makes the connection wait, after the answer that ends it, for a client that goes on
// sending.
func (x *exchange) Linger() { x.endAfter(endLingering) }

// Break implements Exchange. HTTP/1.1 has no such end.
func (x *exchange) Break(error) bool { return false }

// Answered implements Exchange.
func (x *exchange) Answered() bool { return x.answered }

// GoOn implements Exchange.
func (x *exchange) GoOn(rest func()) { x.rest = rest }

// Detach copies the head. The connection's buffer can then serve other requests while this one
// goes on.
func (x *exchange) Detach() {
	_ = x.request.Head.Parse(bytes.Clone(x.conn.in.buf[:x.headEnd]), x.conn.options) // it is known to be good
	x.isDetached = true
}

// IsDetached implements Exchange.
func (x *exchange) IsDetached() bool { return x.isDetached }

// lend gives the connection's buffer to others until the next head is awaited, unless something is
// in it or refers to it.
func (x *exchange) lend() {
	if in := &x.conn.in; x.isDetached && in.isUsed() {
		in.giveBack()
	}
}
