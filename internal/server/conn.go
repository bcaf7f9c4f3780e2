package server

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
)

// A conn is the connection of a client that speaks HTTP/1.1. One goroutine serves it; a shutdown
// uses life and sending alone, and closes the socket. It represents the exchange on it too, for it
// carries one at a time: it is both a connection and an ongoing exchange.
type conn struct {
	server    *Server
	at        *listeners.Socket   // that the client has connected to
	made      *listeners.Listener // for which it speaks TLS; guarded by the server's lock, and set once
	adopted   *settings           // by which its heads are read
	options   *message.Options    // for the heads of this peer
	socket    socket
	in        input
	peer      Peer
	state     connState
	sending   sending
	pace      pace
	exchange  exchange // the request that is being served, and its answer
	client    presence.Client
	account   *clientAccount // of the peer; nil before the connection is counted
	credit    credit
	watched   polledConn
	sequel    sequel
	parking   parking
	hasServed bool        // a request of HTTP/1.1
	isRetired atomic.Bool // its listener is gone
}

func (s *Server) newConn(nc net.Conn, at *listeners.Socket) *conn {
	c := &conn{server: s, at: at, socket: socket{Conn: nc}, peer: peerOf(nc, at)}
	c.adopt(s.settings.Load())
	c.in = input{socket: &c.socket, buffers: &s.buffers}
	if !at.HasTLS() {
		c.socket.bare.open(nc)
		c.in.waitBare()
	}
	s.add(c)
	s.disconnects.add(c)
	return c
}

// adopt has the next head read by settings.
func (c *conn) adopt(s *settings) {
	c.adopted, c.options, c.peer.IsTrusted = s, &s.untrusted, false
	for _, trusted := range s.TrustedProxies {
		c.peer.IsTrusted = c.peer.IsTrusted || trusted.Contains(c.peer.Addr)
	}
	if c.peer.IsTrusted {
		c.options = &s.trusted
	}
	c.pace = pace{rate: s.MinReadRate, credit: s.WriteTimeout}
}

// stop ends the connection, if it is idle, sends only events or would last.
func (c *conn) stop() {
	if c.state.stop() {
		c.socket.close()
		c.unpark()
	}
	c.sending.interrupt(Events)
	c.endLasting()
}

// came implements connection.
func (c *conn) came() (address string, made *listeners.Listener) { return c.at.Address(), c.made }

// retire implements connection. An answer that goes out after it says that it is the last.
func (c *conn) retire() {
	c.isRetired.Store(true)
	c.stop()
}

// exchanges implements connection.
func (c *conn) exchanges(f func(ongoing)) {
	if c.state.isActive() {
		f(c)
	}
}

// noteAwaited implements ongoing. Each request that ends while the server drains asks.
func (c *conn) noteAwaited() {}

// flow implements ongoing.
func (c *conn) flow() Flow { return c.sending.of() }

// endLasting implements ongoing.
func (c *conn) endLasting() bool {
	if !c.sending.interrupt(Lasting) {
		return false
	}
	_ = c.socket.SetWriteDeadline(time.Now().Add(time.Second)) // a client that does not read delays no other
	return true
}

// cut ends the connection whatever it does, and the exchange with it. The client of an answer without another mark of
// its end than that of the connection must not take it for complete.
func (c *conn) cut() {
	if c.sending.endsByClose() {
		c.socket.reset()
	}
	c.socket.close()
	c.unpark()
	c.sending.interrupt(c.sending.of())
}

// rest makes the connection one that a shutdown need not wait for; false if a shutdown has begun.
func (c *conn) rest() bool {
	c.state.rest()
	phase := c.server.phase.Load()
	if phase >= draining {
		c.server.release(c)
	}
	return phase < stopping && !c.isRetired.Load()
}

func (c *conn) send(p []byte) (int, error) {
	return c.socket.send(p, c.server.settings.Load().WriteTimeout)
}

// errClientLeft is the error of an answer that the client did not read to its end.
var errClientLeft = errors.New("the client closed the connection before the answer was complete")

// sendAnswer sends an answer, or the first part of one.
func (c *conn) sendAnswer(p []byte) error {
	_, err := c.send(p)
	return c.leftBy(err)
}

// sendPart sends a part of an answer that may be long. It implements sender.
func (c *conn) sendPart(p []byte, _ bool) error {
	if len(p) == 0 {
		return nil
	}
	_, err := c.socket.sendPaced(p, &c.pace, c.server.settings.Load().WriteTimeout)
	return c.leftBy(err)
}

// leftBy says by an error of sending that the client is gone, or is cut because it does not read.
func (c *conn) leftBy(err error) error {
	if err == nil {
		return nil
	}
	if isTimeout(err) {
		c.server.settings.Load().TooSlow()
	}
	return errors.Join(errClientLeft, err)
}
