package proxy

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/status"
)

// listener hands out conns. It lasts for as long as its socket does: to run
// out of file descriptors is no reason to stop for good.
type listener struct {
	net.Listener
	server *server
}

func (l *listener) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil && l.server.open() >= l.server.o.MaxConns:
			l.server.turnAway(nc)
		case err == nil:
			return l.server.newConn(nc), nil
		case isShortage(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			l.server.o.Log.Warn("a connection could not be accepted", "cause", err, "pause", pause)
			time.Sleep(pause)
			continue
		default:
			return nil, err
		}
		pause = 0
	}
}

// isShortage tells errors of accept that pass.
func isShortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// turnAway answers a connection over the limit, as far as that can be done
// without waiting for the client.
func (s *server) turnAway(nc net.Conn) {
	retryAfter := s.turnedAway.Add(time.Now())
	body := status.AppendJSON(nil, &status.ServiceUnavailable("the gateway has as many connections as it may", retryAfter).ErrStatus)
	answer := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: " + strconv.Itoa(retryAfter) + "\r\nConnection: close\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	if s.o.TLS == nil { // to whom speaks TLS nothing can be said before a handshake
		_ = nc.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = nc.Write([]byte(answer))
	}
	_ = nc.Close()
}

func (s *server) newConn(nc net.Conn) *conn {
	c := &conn{Conn: nc, server: s, options: &s.untrusted, proto: "http"}
	if addr, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.peer = addr.AddrPort().Addr().Unmap().WithZone("")
		c.peerIP = c.peer.String()
	}
	for _, p := range s.o.TrustedProxies {
		if p.Contains(c.peer) {
			c.trusted, c.options = true, &s.trusted
		}
	}
	if s.o.TLS == nil {
		c.idleWithoutBuffer()
	}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return c
}
