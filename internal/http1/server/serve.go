package server

import (
	"runtime/debug"

	"github.com/admission-gateway/gateway/internal/http1"
)

// serve serves the requests of the connection to the last.
func (c *conn) serve() {
	defer c.end()
	if c.server.o.TLS != nil {
		if ok := c.handshake(); !ok {
			return
		}
	}
	for c.request.Refusal != nil || c.next() {
		c.serveRequest()
		if c.request.fate != keep {
			return
		}
	}
}

// serveRequest calls the handler for the request. A handler that sends no answer ends the connection.
func (c *conn) serveRequest() {
	r := &c.request
	c.callHandler(r)
	if !r.answered {
		r.endAfter(end)
	}
	r.body.buffer.release()
	r.Memory.Close()
}

// callHandler calls the handler, and answers for it if it panics.
func (c *conn) callHandler(r *Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.server.o.Log.Error("a request made the gateway panic", "panic", p, "stack", string(debug.Stack()))
		r.endAfter(end)
		if !r.answered {
			var answer http1.Response
			c.server.o.Panicked(&answer)
			r.Send(&answer)
		}
	}()
	c.server.handle(r)
}

// end closes the connection. A client that may still be sending gets to read the answer first.
func (c *conn) end() {
	if c.request.fate == endLingering && !c.server.isStopping() {
		c.server.lingering.drain(c)
	}
	_ = c.socket.Close()
	c.in.giveBack()
	c.server.remove(c)
}
