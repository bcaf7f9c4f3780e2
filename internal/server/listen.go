package server

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/status"
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
			l.server.turnAway(nc, at)
		default:
			return nc, at, nil
		}
	}
}

// tell says that connections cannot be accepted now.
func (l *listener) tell(cause error, times int) {
	l.server.settings.Load().Log.Warn("a connection could not be accepted", "cause", cause, "times", times)
}

// turnAway answers a connection over the limit, without waiting for the client.
func (s *Server) turnAway(nc net.Conn, at *listeners.Socket) {
	retryAfter := s.settings.Load().RetryAfter(time.Now())
	body := status.AppendJSON(nil, &status.ServiceUnavailable("the gateway has as many connections as it may", retryAfter).ErrStatus)
	answer := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: " + strconv.Itoa(retryAfter) +
		"\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	if !at.HasTLS() { // nothing can be said before a handshake
		_ = nc.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = nc.Write([]byte(answer))
	}
	_ = nc.Close()
}
