package server

import (
	"bytes"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// next reads the next head. It returns false if there is none: the client closed the connection,
// was idle for too long, or the server shuts down.
func (c *conn) next() bool {
	x := c.newExchange()
	if !c.await() {
		return false
	}
	if now := c.server.settings.Load(); now != c.adopted {
		c.adopt(now)
	}
	in, from := &c.in, 0
	if received := in.received(); isMethodStart(received[0]) { // most heads come whole
		if n := x.request.Head.Read(received[:min(len(received), c.options.HeadBytes)], c.options); n > 0 {
			return x.begin(n)
		}
	}
	for late := false; ; late = true {
		end, next, flaw := message.HeadEnd(in.received(), from)
		switch {
		case flaw != nil:
			return x.refuse(flaw.OfRequest())
		case !isMethodStart(in.buf[0]):
			return x.refuse(&message.Error{Code: 400,
				Message: "the request line must start with a method in capital letters"})
		case end > c.options.HeadBytes || end == 0 && in.w >= c.options.HeadBytes:
			return x.refuse(c.tooLarge())
		case end > 0:
			return x.parse(end)
		}
		from = next
		if !late {
			// The rest must come soon, whatever trickles in meanwhile.
			c.socket.setReadDeadline(time.Now().Add(c.server.settings.Load().HeadTimeout))
		}
		if in.w == len(in.buf) {
			in.grow(c.options.HeadBytes)
		}
		if n, err := in.fill(); n == 0 {
			return isTimeout(err) &&
				x.refuse(&message.Error{Code: 408, Message: "the head of the request did not arrive in time"})
		}
	}
}

// await makes sure that the buffer has the first bytes of the next head.
func (c *conn) await() bool {
	in := &c.in
	if in.restart(); in.w > 0 {
		return true
	}
	if !c.rest() {
		return false
	}
	mayPark := c.armIdle()
	err := in.await()
	if in.w == 0 && mayPark && isTimeout(err) {
		if c.park(); c.sequel == parks {
			return false
		}
	}
	if !c.parking.by.IsZero() {
		c.parking.by = time.Time{}
	}
	return c.state.wake() && in.w > 0
}

// parse reads the head, which is so long.
func (x *exchange) parse(length int) bool {
	in := &x.conn.in
	if string(in.buf[:length]) == prefaceLine && x.conn.mayBeginHTTP2() {
		x.beginsHTTP2 = true
		return true
	}
	if bad := x.request.Head.Parse(in.buf[:length], x.conn.options); bad != nil {
		return x.refuse(bad)
	}
	return x.begin(length)
}

// isMethodStart reports whether a head may begin with a byte.
func isMethodStart(c byte) bool { return 'A' <= c && c <= 'Z' }

// begin begins the exchange of a head that was read, and is so long.
func (x *exchange) begin(length int) bool {
	x.conn.in.r, x.headEnd = length, length
	if !x.request.Head.HasBody() {
		x.body = bodyRead
	}
	x.headOnly = string(x.request.Head.Method) == "HEAD"
	if x.request.Head.Close {
		x.endAfter(end)
	}
	return true
}

// refuse keeps the refusal for the handler. Nothing more is read from the connection: the start of
// the next request is not known.
func (x *exchange) refuse(err error) bool {
	x.request.Refusal = refusalOf(err)
	x.endAfter(endLingering)
	x.request.Head.Salvage(x.conn.in.received())
	x.isHTTP2 = beginsHTTP2(x.conn.in.received())
	// A head that could not be parsed may still say that no body is expected.
	x.headOnly = bytes.HasPrefix(x.conn.in.received(), []byte("HEAD "))
	return true
}

// tooLarge returns which part of the head is too large.
func (c *conn) tooLarge() error {
	line := bytes.IndexByte(c.in.received(), '\n')
	if line < 0 {
		line = c.in.w
	}
	if line > c.options.TargetBytes {
		return &message.Error{Code: 414, Message: "the request target is too long"}
	}
	return &message.Error{Code: 431, Message: "the head of the request is too large"}
}
