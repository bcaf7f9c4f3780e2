package server

import (
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
)

// What clients' connections and requests take of the memory for requests, beyond what the requests reserve. It is what
// they take as a rule: goroutines, heads, buffers, and the connection to the backend.
const (
	connectionBytes = 4 << 10
	sessionBytes    = 20 << 10 // of HTTP/2, beyond that
	requestBytes    = 40 << 10 // of a request in flight
	lastingBytes    = 16 << 10 // of an answer that the handler has left to go on
)

// An Overload says what is refused because the memory for requests is used up, or the client's share of it.
type Overload string

const (
	// RefusedConnection is a connection that is closed before it has a request.
	RefusedConnection Overload = "connection"
	// RefusedRequest is a request of HTTP/1.1, which is answered 503.
	RefusedRequest Overload = "request"
	// RefusedStream is a stream of HTTP/2, which is reset with REFUSED_STREAM.
	RefusedStream Overload = "stream"
	// RefusedResets is a stream behind a trusted proxy whose client has reset too many.
	RefusedResets Overload = "resets"
)

// A credit is what a connection holds of the memory for requests, so that most of its requests need not ask for any.
type credit struct {
	budget *memory.Budget
	by     *memory.Holder // nil if the peer speaks for many clients
	held   int
}

// need makes sure that so many bytes are held. It returns false if they may not be.
func (c *credit) need(n int) bool {
	if n <= c.held {
		return true
	}
	if !c.budget.Hold(n-c.held, c.by) {
		return false
	}
	c.held = n
	return true
}

// keep gives back all but n bytes.
func (c *credit) keep(n int) {
	if c.held > n {
		c.budget.Release(c.held-n, c.by)
		c.held = n
	}
}

// register counts the connection, now that it is known whose it is. It returns false if there is no memory for it.
func (c *conn) register() bool {
	c.account = c.server.accounts.open(c.peer.Addr)
	c.credit.budget = c.server.settings.Load().Memory.Budget
	if !c.peer.IsTrusted {
		c.credit.by = &c.account.Holder
	}
	if c.credit.need(connectionBytes) {
		return true
	}
	c.server.settings.Load().Overloaded(RefusedConnection)
	c.server.turnAway(c.socket.Conn, c.at, whyFull)
	return false
}

// unregister gives back what the connection holds.
func (c *conn) unregister() {
	if c.account != nil {
		c.credit.keep(0)
		c.account.close()
	}
}

// admit makes sure that there is memory for a request, or answers 503.
func (c *conn) admit() bool {
	x := &c.exchange
	if !c.credit.need(connectionBytes + requestBytes) {
		return c.refuseRequest()
	}
	switch {
	case c.credit.by != nil:
		x.request.Memory.SetHolder(c.credit.by)
	case c.credit.budget.IsShort():
		a := c.server.accounts.open(c.server.clientOf(&x.request.Head, c.peer.Addr))
		if !c.credit.budget.Charge(requestBytes, &a.Holder) {
			a.close()
			return c.refuseRequest()
		}
		x.account = a
		x.request.Memory.SetHolder(&a.Holder)
	}
	return true
}

// uncharge ends what was counted for a client behind a trusted proxy.
func (s *Server) uncharge(a *clientAccount, budget *memory.Budget) {
	budget.Discharge(requestBytes, &a.Holder)
	a.close()
}

// clientOf returns the address of the client that a trusted proxy speaks for.
func (s *Server) clientOf(head *message.Head, peer netip.Addr) netip.Addr {
	if of := s.settings.Load().ClientOf; of != nil {
		return of(head, peer)
	}
	return peer
}

// refuseRequest answers 503 to a request for which there is no memory. The handler is not called.
func (c *conn) refuseRequest() bool {
	o := c.server.settings.Load()
	o.Overloaded(RefusedRequest)
	answer, body := unavailable(o, whyFull)
	if !c.exchange.headOnly {
		answer += body
	}
	_, _ = c.send([]byte(answer)) // the connection ends in any case
	c.exchange.endAfter(endLingering)
	return false
}

// whyFull says why a client for whom there is no memory is turned away.
const whyFull = "the memory for requests is used up, or the client's share of it"

// unavailable returns the answer 503 to a client that is turned away without its handler.
func unavailable(o *settings, why string) (head, body string) {
	retryAfter := o.RetryAfter(time.Now())
	body = string(status.AppendJSON(nil, &status.ServiceUnavailable(why, retryAfter).ErrStatus))
	return "HTTP/1.1 " + strconv.Itoa(http.StatusServiceUnavailable) +
			" Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: " +
			strconv.Itoa(retryAfter) + "\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) +
			"\r\n\r\n",
		body
}
