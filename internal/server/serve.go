package server

import (
	"runtime/debug"

	"github.com/admission-gateway/gateway/internal/message"
)

// serve serves the requests of the connection to the last.
func (c *conn) serve() {
	defer c.end()
	if len(c.at.Proxies()) > 0 && !c.introduce() {
		return
	}
	if c.at.HasTLS() {
		if ok := c.handshake(); !ok {
			return
		}
		if c.hasAgreedOnHTTP2() {
			newSession(c).serve()
			return
		}
	}
	for c.exchange.request.Refusal != nil || c.next() {
		if c.exchange.beginsHTTP2 {
			newSession(c).serve()
			return
		}
		c.serveExchange()
		if c.exchange.fate != keep {
			return
		}
	}
}

// serveExchange calls the handler for the request. A handler that sends no answer ends the connection.
func (c *conn) serveExchange() {
	x := &c.exchange
	c.hasServed = true
	c.callHandler(x)
	if !x.answered {
		x.endAfter(end)
	}
	x.request.close()
}

// callHandler calls the handler, and answers for it if it panics.
func (c *conn) callHandler(x *exchange) {
	defer func() {
		if p := recover(); p != nil {
			x.endAfter(end)
			c.server.panicked(&x.request, p)
		}
	}()
	c.server.handle(&x.request)
}

// panicked logs that the handler of a request panicked, and answers for it.
func (s *Server) panicked(r *Request, p any) {
	o := s.settings.Load()
	o.Log.Error("a request made the gateway panic", "panic", p, "stack", string(debug.Stack()))
	if !r.Answered() {
		var answer message.Response
		o.Panicked(&answer)
		r.Send(&answer)
	}
}

// end closes the connection. A client that may still be sending gets to read the answer first.
func (c *conn) end() {
	if c.exchange.fate == endLingering && !c.server.isStopping() {
		c.server.lingering.drain(c)
	}
	_ = c.socket.Close()
	c.in.giveBack()
	c.rest()
	c.server.remove(c)
}
