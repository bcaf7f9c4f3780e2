package upstream

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/wire"
)

// conn is a connection to the backend with what one exchange on it needs.
type conn struct {
	net.Conn
	endpoint   *endpoint // that it is a connection to
	generation uint64    // of which it is
	raw        syscall.RawConn
	peek       func(fd uintptr)
	turn       func(fd uintptr) bool
	outward    turn
	stirred    bool      // what peek found: bytes, an end or an error
	freed      time.Time // when the last exchange on it was over

	arrived func(fd uintptr) bool // of a stream: there is something to read
	ahead   [1]byte               // read ahead of the next Read
	isAhead bool                  // there is such a byte

	readBy, writeBy time.Time // the deadlines that are set

	answer wire.Answer
	frame  frame
	parts  [2][]byte
	vector net.Buffers
}

// dial makes a connection to an endpoint.
func (c *Client) dial(e *endpoint, timeout time.Duration) (*conn, error) {
	dialer := c.dialer
	dialer.Timeout = timeout
	by := time.Now().Add(timeout)
	generation := c.pool.current()
	nc, err := dialer.Dial("tcp", e.addr)
	if err != nil {
		return nil, &dialError{err}
	}
	cn := &conn{Conn: nc, endpoint: e, generation: generation}
	if sc, ok := nc.(syscall.Conn); ok {
		if cn.raw, err = sc.SyscallConn(); err == nil {
			cn.peek, cn.turn = cn.peekAt, cn.outward.at
		}
	}
	if c.secure {
		if err := cn.handshake(c.config.TLS, e.origin.authority, by); err != nil {
			_ = nc.Close()
			return nil, &dialError{err}
		}
	}
	return cn, nil
}

// handshake puts TLS over the connection. fasthttp takes no part in it: the
// bytes must be seen as they are after decryption.
func (cn *conn) handshake(settings func() *tls.Config, addr string, by time.Time) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if settings != nil {
		config = settings()
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		config = config.Clone()
		config.ServerName = host
	}
	if err := cn.SetDeadline(by); err != nil {
		return err
	}
	tc := tls.Client(cn.Conn, config)
	if err := tc.Handshake(); err != nil {
		return err
	}
	cn.Conn = tc
	return cn.SetDeadline(time.Time{})
}

// stale reports whether an unused connection has ended, or has bytes that
// nobody asked for: in both cases no request may be sent on it.
func (cn *conn) stale() bool {
	if cn.raw == nil {
		return false
	}
	cn.stirred = false
	if err := cn.raw.Control(cn.peek); err != nil {
		return true
	}
	return cn.stirred
}

// holds reports what TLS has taken off the socket, and nobody off TLS: bytes, or
// the end of the connection. Of a socket without TLS stale sees it.
func (cn *conn) holds() (bytes, end bool) {
	secure, ok := cn.Conn.(*tls.Conn)
	if !ok {
		return false, false
	}
	cn.readBy = time.Unix(1, 0) // so that nothing is waited for
	if err := secure.SetReadDeadline(cn.readBy); err != nil {
		return false, true
	}
	var one [1]byte
	n, err := secure.Read(one[:])
	return n > 0, n == 0 && !isTimeout(err)
}

// smallRequest is up to what size head and body are copied together: that
// costs less than a vectored write.
const smallRequest = 8 << 10

// write writes the request, head and body in one go. sent tells whether a byte
// of it may have left.
func (c *Client) write(cn *conn, head, body []byte) (sent bool, err error) {
	var n int64
	tcp, plain := cn.Conn.(*net.TCPConn)
	switch {
	case len(body) == 0:
		n, err = cn.writeAndWait(head, plain)
	case len(head)+len(body) <= smallRequest:
		scratch, ok := c.scratch.Get().(*[smallRequest]byte)
		if !ok {
			scratch = new([smallRequest]byte)
		}
		m := copy(scratch[copy(scratch[:], head):], body)
		n, err = cn.writeAndWait(scratch[:len(head)+m], plain)
		c.scratch.Put(scratch)
	case plain:
		cn.parts[0], cn.parts[1] = head, body
		cn.vector = cn.parts[:]
		n, err = cn.vector.WriteTo(tcp)
		cn.parts[0], cn.parts[1] = nil, nil
	default:
		if n, err = count(cn.Conn.Write(head)); err == nil {
			_, err = cn.Conn.Write(body)
		}
	}
	// Of TLS a record may have left although no byte of it is reported.
	return n > 0 || err == nil || !plain, err
}

func count(n int, err error) (int64, error) { return int64(n), err }

// turn is one write to a socket that something is to be read from next.
type turn struct {
	rest []byte // to be written
	err  error
	over bool // the next call is after the socket became readable
}

// writeAndWait writes p and waits until there is something to read, an end or an error included. An ordinary read tries
// before it waits, in vain as the answer takes a moment: that is a system call for each request.
func (cn *conn) writeAndWait(p []byte, plain bool) (int64, error) {
	if cn.raw == nil || !plain {
		return count(cn.Conn.Write(p))
	}
	t := &cn.outward
	*t = turn{rest: p}
	waited := cn.raw.Read(cn.turn)
	written, rest, err := len(p)-len(t.rest), t.rest, t.err
	*t = turn{}
	switch {
	case err != nil:
		return int64(written), err
	case len(rest) > 0:
		n, err := cn.Conn.Write(rest)
		return int64(written + n), err
	case written == 0:
		return 0, waited // the connection is closed
	}
	// What is wrong with the wait will be wrong with the read that follows.
	return int64(written), nil
}

// armRead sets the deadline of reads to about d from now, or to exactly by
// where that is set and earlier. Setting a deadline costs as much as a good
// part of a system call, so one that is at most an eighth too late is kept.
func (cn *conn) armRead(now time.Time, d time.Duration, by time.Time) error {
	until, keep := armed(cn.readBy, now, d, by)
	if keep {
		return nil
	}
	cn.readBy = until
	return cn.Conn.SetReadDeadline(until)
}

// armWrite is armRead for writes.
func (cn *conn) armWrite(now time.Time, d time.Duration, by time.Time) error {
	until, keep := armed(cn.writeBy, now, d, by)
	if keep {
		return nil
	}
	cn.writeBy = until
	return cn.Conn.SetWriteDeadline(until)
}

func armed(set, now time.Time, d time.Duration, by time.Time) (until time.Time, keep bool) {
	if d <= 0 {
		return by, set.Equal(by)
	}
	least := now.Add(d)
	if !by.IsZero() && by.Before(least) {
		return by, set.Equal(by)
	}
	most := least.Add(d / 8)
	return most, !set.Before(least) && !set.After(most)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
