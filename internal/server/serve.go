package server

import (
	"runtime/debug"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/stack"
)

// serve serves the requests of the connection, to the last or until it is parked.
func (c *conn) serve() {
	defer c.leave()
	if len(c.at.Proxies()) > 0 && !c.readProxyProtocol() || !c.register() {
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
	c.serveRequests()
}

// serveRequests serves requests for as long as this goroutine is to do that.
func (c *conn) serveRequests() {
	for c.exchange.request.Refusal != nil || c.next() {
		if c.exchange.beginsHTTP2 {
			newSession(c).serve()
			return
		}
		if !c.admit() {
			return
		}
		stack.Widen()
		c.server.disconnects.begin(c)
		if c.serveExchange(); c.exchange.rest != nil {
			c.sequel = goesOn
			return
		}
		if c.exchange.fate != keep {
			return
		}
	}
}

// goOn sends the rest of an answer that may go on for hours, and serves the requests after it. It has a goroutine of
// its own, because the stack of the one before has grown with the request.
func (c *conn) goOn() {
	defer c.leave()
	x := &c.exchange
	rest := x.rest
	x.rest = nil
	c.call(x, func(*Request) { rest() })
	if c.over(x); x.fate == keep {
		c.serveRequests()
	}
}

// serveExchange calls the handler for the request. A handler that sends no answer ends the connection.
func (c *conn) serveExchange() {
	x := &c.exchange
	c.hasServed = true
	c.call(x, c.server.handle)
	if x.rest == nil {
		c.over(x)
	}
}

// over ends the exchange.
func (c *conn) over(x *exchange) {
	c.watched.turns.Add(1)
	if !x.answered || c.client.HasLeft() {
		x.endAfter(end)
	}
	x.request.close()
	if x.account != nil {
		c.server.uncharge(x.account, c.credit.budget)
		x.account = nil
	}
}

// call calls the handler, or what it has left to do, and answers for it if it panics.
func (c *conn) call(x *exchange, handle Handler) {
	defer func() {
		if p := recover(); p != nil {
			x.endAfter(end)
			c.server.panicked(&x.request, p)
		}
	}()
	handle(&x.request)
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
		c.server.lingering.await(c)
	}
	c.server.disconnects.remove(c)
	_ = c.socket.Close()
	c.in.giveBack()
	c.unregister()
	c.rest()
	c.server.remove(c)
}
