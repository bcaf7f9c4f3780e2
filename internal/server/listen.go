package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/listeners"
)

// A listener accepts connections. It lasts for as long as its socket does: to run out of file
// descriptors is no reason to stop for good.
type listener struct {
	descriptors.Listener
	server  *Server
	address string // of the listeners of the settings
	closed  sync.Once
	isLeft  atomic.Bool // nothing more is accepted
}

// Close closes the socket once.
func (l *listener) Close() (err error) {
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// serve serves each connection in a goroutine of its own, until the listener is closed.
func (l *listener) serve() error {
	for {
		nc, at, err := l.accept()
		switch {
		case err == nil:
			go l.server.newConn(nc, at).serve()
		case l.server.isStopping(), l.isLeft.Load():
			return nil
		default:
			return err
		}
	}
}

// accept returns the next connection that may be served, and the socket's listeners.
func (l *listener) accept() (net.Conn, *listeners.Socket, error) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return nil, nil, err
		}
		o := l.server.settings.Load()
		at := o.Listeners.Socket(l.address)
		switch {
		case at == nil:
			_ = nc.Close() // the address is about to be left
		case l.server.Open() >= o.MaxConns, !descriptors.MayServe(nc):
			l.server.turnAway(nc, at, "the gateway has as many connections as it may")
		default:
			return nc, at, nil
		}
	}
}

// tell says that connections cannot be accepted now.
func (l *listener) tell(cause error, times int) {
	l.server.settings.Load().Log.Warn("a connection could not be accepted", "cause", cause, "times", times)
}

// turnAway answers a connection over a limit, without waiting for the client.
func (s *Server) turnAway(nc net.Conn, at *listeners.Socket, why string) {
	head, body := unavailable(s.settings.Load(), why)
	if !at.HasTLS() { // nothing can be said before a handshake
		_ = nc.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = nc.Write([]byte(head + body))
	}
	_ = nc.Close()
}
