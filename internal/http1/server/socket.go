package server

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/http1/secure"
)

// A socket is the gateway's end of a connection: of TCP, or of TLS over it. Only the goroutine that
// serves the connection uses it, but for close.
type socket struct {
	net.Conn
	readBy, writeBy time.Time // the deadlines that are set
}

// armRead makes sure that a read ends after about d. A deadline that is at most an eighth too late
// is kept: to set one costs a good part of a system call.
func (s *socket) armRead(d time.Duration) {
	if by, stale := extend(s.readBy, d); stale {
		s.setReadDeadline(by)
	}
}

func (s *socket) armWrite(d time.Duration) {
	if by, stale := extend(s.writeBy, d); stale {
		s.setWriteDeadline(by)
	}
}

// extend returns the deadline for something that may take d, and whether the one that is set is not
// near enough.
func extend(set time.Time, d time.Duration) (time.Time, bool) {
	least := time.Now().Add(d)
	latest := least.Add(d / 8)
	return latest, set.Before(least) || set.After(latest)
}

// setReadDeadline and setWriteDeadline return no error: it would mean that the connection is
// closed, which the next read or write says.
func (s *socket) setReadDeadline(t time.Time) {
	s.readBy = t
	_ = s.SetReadDeadline(t)
}

func (s *socket) setWriteDeadline(t time.Time) {
	s.writeBy = t
	_ = s.SetWriteDeadline(t)
}

// send sends bytes to the client, which must take each part of them within a time.
func (s *socket) send(p []byte, within time.Duration) (int, error) {
	const part = 128 << 10
	sent := 0
	for {
		s.armWrite(within)
		n, err := s.Write(p[:min(len(p), part)])
		sent += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return sent, err
		}
	}
}

// close closes the connection from another goroutine, and waits for nothing.
func (s *socket) close() {
	if over, ok := s.Conn.(*secure.Conn); ok {
		go func() { _ = over.Close() }() // it says goodbye first, and the client may not listen
		return
	}
	_ = s.Close()
}

// reset makes the client see that the connection broke, so that its end is not taken for the end of
// a body.
func (s *socket) reset() {
	under, over := underlying(s.Conn)
	if tcp, ok := under.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	if over {
		_ = under.Close() // else TLS would be ended in order, as after a complete body
	}
}

// underlying returns the socket below TLS, and whether there is TLS.
func underlying(c net.Conn) (net.Conn, bool) {
	if over, ok := c.(*secure.Conn); ok {
		return over.NetConn(), true
	}
	return c, false
}

// isGone reports whether the client has closed the connection. It takes nothing from the socket,
// and may be called while another goroutine reads.
func (s *socket) isGone() bool {
	under, _ := underlying(s.Conn)
	raw := rawOf(under)
	if raw == nil {
		return false
	}
	closed := false
	err := raw.Control(func(fd uintptr) { closed, _ = peekClosed(fd) })
	return closed || err != nil
}

// rawOf returns the descriptor of a socket; nil if it has none.
func rawOf(c net.Conn) syscall.RawConn {
	has, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := has.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// waiter returns a function that waits without memory until the other end has sent something, and
// returns the error that a read would; nil if the connection has no such thing.
func waiter(c net.Conn) func() error {
	if over, ok := c.(*secure.Conn); ok {
		return over.Wait
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw := rawOf(tcp)
	if raw == nil {
		return nil
	}
	return func() error {
		closed := false
		err := raw.Read(func(fd uintptr) bool {
			var waits bool
			closed, waits = peekClosed(fd)
			return !waits
		})
		if closed {
			return io.EOF
		}
		return err
	}
}

// errNoHalf is the error of a connection that cannot be closed for one way alone.
var errNoHalf = errors.New("the connection has no end for one way")

// closeWrite ends the way to the other end, which may go on sending.
func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errNoHalf
	}
	return half.CloseWrite()
}

func isTimeout(err error) bool {
	t, ok := err.(net.Error)
	return ok && t.Timeout()
}
