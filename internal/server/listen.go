package server

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/status"
)

// A listener accepts connections. It lasts for as long as its socket does: to run out of file
// descriptors is no reason to stop for good.
type listener struct {
	net.Listener
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
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		o := l.server.settings.Load()
		at := o.Listeners.Socket(l.address)
		switch {
		case err == nil && at == nil:
			_ = nc.Close() // the address is about to be left
		case err == nil && l.server.Open() >= o.MaxConns:
			l.server.turnAway(nc, at)
		case err == nil:
			return nc, at, nil
		case isShortage(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			o.Log.Warn("a connection could not be accepted", "cause", err, "pause", pause)
			time.Sleep(pause)
			continue
		default:
			return nil, nil, err
		}
		pause = 0
	}
}

// isShortage reports whether an error of accept passes by itself.
func isShortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
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
