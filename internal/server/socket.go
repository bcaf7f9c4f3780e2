package server

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/secure"
)

// A socket is the gateway's end of a connection: of TCP, or of TLS over it. Only the goroutine that
// serves the connection uses it, but for close.
type socket struct {
	net.Conn
	readBy, writeBy time.Time // the deadlines that are set
	bare            bare
}

// A bare is the descriptor of a socket without TLS. A call on it that never waits need not be
// announced to the scheduler of goroutines. The first announcement after a pause is dear: it wakes
// the runtime's thread that watches calls which wait, and that thread stays awake for a while.
type bare struct {
	raw  syscall.RawConn       // nil if the connection has none, or the system has no such calls
	put  func(fd uintptr) bool // made once, so that a call does not allocate
	give func(fd uintptr)      // the same
	rest []byte                // to be written
	err  error                 // of the last write
}

// open gives the descriptor of a connection.
func (b *bare) open(c net.Conn) {
	if !peek.IsAble {
		return
	}
	if b.raw = rawOf(c); b.raw != nil {
		b.put = b.putRest
		b.give = func(fd uintptr) { b.putRest(fd) }
	}
}

// write is Write of a net.Conn. The deadline of writes holds.
func (b *bare) write(p []byte) (int, error) {
	b.rest, b.err = p, nil
	err := b.raw.Write(b.put)
	n := len(p) - len(b.rest)
	if b.rest = nil; b.err != nil {
		err = b.err
	}
	return n, err
}

// offer writes what the socket takes at once, whatever the deadline, and returns how much that is. If something is
// wrong with the connection, the next write says so.
func (b *bare) offer(p []byte) (sent int) {
	if b.raw == nil {
		return 0
	}
	b.rest = p
	_ = b.raw.Control(b.give)
	sent = len(p) - len(b.rest)
	b.rest, b.err = nil, nil
	return sent
}

// putRest writes what the socket takes, and returns false if it takes no more at the moment.
func (b *bare) putRest(fd uintptr) bool {
	for len(b.rest) > 0 {
		n, waits, err := peek.Write(fd, b.rest)
		if waits {
			return false
		}
		if b.err = err; err != nil {
			return true
		}
		b.rest = b.rest[n:]
	}
	return true
}

// putOver puts TLS over the socket. All writes go through it from then on.
func (s *socket) putOver(over net.Conn) { s.Conn, s.bare = over, bare{} }

// write writes to the client.
func (s *socket) write(p []byte) (int, error) {
	if s.bare.raw != nil {
		return s.bare.write(p)
	}
	return s.Conn.Write(p)
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
	most := d + d/8
	if left := time.Until(set); d <= left && left <= most { // Until reads one clock, Now reads two
		return set, false
	}
	return time.Now().Add(most), true
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

// sentPart is how much is written by one call.
const sentPart = 128 << 10

// send sends bytes to the client, which must take each part of them within a time. What it takes at once, which is all
// of most answers, needs no deadline.
func (s *socket) send(p []byte, within time.Duration) (int, error) {
	sent := s.bare.offer(p[:min(len(p), sentPart)])
	for p = p[sent:]; len(p) > 0; {
		s.armWrite(within)
		n, err := s.write(p[:min(len(p), sentPart)])
		sent += n
		p = p[n:]
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// A pace is how fast a client takes an answer, beside the least that it has to. A client that is slower for a while
// uses up its credit; one that is faster gets it back. Time in which there is nothing to send does not count.
type pace struct {
	rate   int64         // bytes in a second at least; 0: any
	credit time.Duration // that the client may be late
}

// allows returns how long the client has to take n bytes: the time that they take at the least rate, and its credit,
// but never longer than most.
func (p *pace) allows(n int, most time.Duration) time.Duration {
	if p.rate <= 0 {
		return most
	}
	return min(max(p.credit+p.due(n), time.Millisecond), most)
}

// due is how long n bytes take at the least rate.
func (p *pace) due(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Second) / p.rate)
}

// took notes that the client took n bytes within a time. What it takes to ask the system is no waiting.
func (p *pace) took(n int, within, most time.Duration) {
	if within < time.Millisecond {
		within = 0
	}
	if p.rate > 0 {
		p.credit = min(p.credit+p.due(n)-within, most)
	}
}

// sendPaced is send for a part of an answer that may go on for long: the client must take it at a least pace too.
func (s *socket) sendPaced(p []byte, pace *pace, within time.Duration) (int, error) {
	sent := s.bare.offer(p[:min(len(p), sentPart)])
	pace.took(sent, 0, within)
	for p = p[sent:]; len(p) > 0; {
		n := min(len(p), sentPart)
		begin := time.Now()
		s.armWrite(pace.allows(n, within))
		n, err := s.write(p[:n])
		pace.took(n, time.Since(begin), within)
		sent += n
		p = p[n:]
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
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
	if over, ok := c.(interface{ Wait() error }); ok {
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
			closed, waits = peek.Closed(fd)
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
