package proxy

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// readBuffer is the size of the buffer of a connection: a head and a small
// body fit, so that most requests are read by one system call.
const readBuffer = 16 << 10

// conn is the client's connection. It reads and judges each request itself;
// fasthttp, which owns the connection, gets to read one constant head, so that
// what it is lenient about never matters. Only the goroutine that serves the
// connection uses it, but for Close and the atomic fields.
type conn struct {
	net.Conn
	server  *server
	options *wire.Options
	// peer is the address of the client's end, trusted whether it is a proxy
	// that may tell who the client is.
	peer    netip.Addr
	peerIP  string
	trusted bool
	proto   string // http or https
	shaken  bool   // there was a handshake, if there has to be one
	// certificate is what the client has shown of itself by TLS.
	certificate clientCertificate
	identity    identity.Connection // and what that says of who asks

	// raw is the socket of a connection without TLS, and idle how it is read from where nobody knows when something comes:
	// without a buffer until then.
	raw  syscall.RawConn
	idle func(fd uintptr) bool

	pooled  *[readBuffer]byte // the memory of buf, but while an outsize head needs more; nil while nothing needs it
	buf     []byte
	r, w    int // buf[r:w] was received and not used
	headEnd int // of the current request in buf

	head    wire.Head
	refusal *status.Error // of the current head; nil if it is good
	// constant is what fasthttp has still to read of the constant head.
	constant string
	// headOnly is set where the answer to the request has no body.
	headOnly bool
	// ending connections serve no further request.
	ending bool
	// answered is set once the answer, or the first part of it, went out.
	answered bool

	body   bodyState
	spill  spill
	linger bool // the client may be sending still when the connection closes
	// detached is set where the head of the request was copied, so that nothing refers to buf.
	detached bool

	readBy, writeBy time.Time // the deadlines that are set

	state   atomic.Int32
	stream  atomic.Pointer[upstream.Body] // that is being sent
	endless atomic.Bool                   // and consists of events
	closed  atomic.Bool
}

// The states of a connection, as far as a shutdown must know them.
const (
	connActive int32 = iota
	connIdle
	connCut // by a shutdown, while idle
)

// constantHead is the head that fasthttp reads.
const constantHead = "GET / HTTP/1.1\r\nHost: g\r\n\r\n"

// release gives the memory back once fasthttp is through with the connection.
func (c *conn) release() {
	if c.pooled != nil {
		c.server.buffers.Put(c.pooled)
		c.pooled, c.buf = nil, nil
	}
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
}

// Read gives fasthttp the constant head, once the head of the first request has
// been read and judged.
func (c *conn) Read(p []byte) (int, error) {
	if c.constant == "" {
		if c.ending || !c.next() {
			return 0, io.EOF
		}
		c.constant = constantHead
	}
	n := copy(p, c.constant)
	c.constant = c.constant[n:]
	return n, nil
}

// next reads the next head. It returns false where there is none: the client
// closed the connection, was idle for too long, or the server shuts down.
func (c *conn) next() bool {
	c.head.Reset()
	c.answered, c.refusal, c.body, c.detached = false, nil, bodyUnread, false
	if !c.shaken && c.server.o.TLS != nil {
		c.shaken = true
		if !c.handshake() || c.refusal != nil {
			return c.refusal != nil
		}
	}
	if !c.await() {
		return false
	}
	from := 0
	for slow := false; ; slow = true {
		end, next, bad := wire.HeadEnd(c.buf[:c.w], from)
		switch {
		case bad != nil:
			return c.refuse(bad)
		case c.buf[0] < 'A' || c.buf[0] > 'Z':
			return c.refuse(&wire.Error{Code: 400, Message: "the request line must start with a method in capital letters"})
		case end > c.options.HeadBytes || end == 0 && c.w >= c.options.HeadBytes:
			return c.refuse(c.tooLarge(end))
		case end > 0:
			return c.judge(end)
		}
		from = next
		if !slow {
			// The rest must come soon, whatever trickles in meanwhile.
			c.setReadDeadline(time.Now().Add(c.server.o.HeadTimeout))
		}
		if c.w == len(c.buf) {
			c.buf = append(make([]byte, 0, c.options.HeadBytes), c.buf...)[:c.options.HeadBytes]
		}
		n, err := c.Conn.Read(c.buf[c.w:])
		c.w += n
		if n > 0 {
			continue
		}
		if isTimeout(err) {
			return c.refuse(&wire.Error{Code: 408, Message: "the head of the request did not arrive in time"})
		}
		return false
	}
}

// await makes sure that the buffer has the first bytes of the next head.
func (c *conn) await() bool {
	c.borrow()
	if len(c.buf) > readBuffer && c.w-c.r <= readBuffer {
		// An outsize head made the buffer grow.
		copy(c.pooled[:], c.buf[c.r:c.w])
		c.buf = c.pooled[:]
		c.r, c.w = 0, c.w-c.r
	} else if c.r > 0 {
		c.r, c.w = 0, copy(c.buf, c.buf[c.r:c.w])
	}
	if c.w > 0 {
		return true
	}
	c.state.Store(connIdle)
	if c.server.stopping.Load() {
		return false
	}
	c.armRead(c.server.o.IdleTimeout)
	if c.idle != nil {
		c.giveBack()
		_ = c.raw.Read(c.idle) // an error leaves nothing read
	} else {
		c.w, _ = c.Conn.Read(c.buf)
	}
	return c.state.CompareAndSwap(connIdle, connActive) && c.w > 0
}

// judge reads the head.
func (c *conn) judge(end int) bool {
	if bad := c.head.Parse(c.buf[:end], c.options); bad != nil {
		return c.refuse(bad)
	}
	c.r, c.headEnd = end, end
	if !c.head.HasBody() {
		c.body = bodyNone
	}
	c.headOnly = string(c.head.Method) == "HEAD"
	c.ending = c.head.Close
	return true
}

// detach copies the head of the request, whose reader has to read all of it again.
func (c *conn) detach() {
	_ = c.head.Parse(bytes.Clone(c.buf[:c.headEnd]), c.options) // that it is good is known
	c.detached = true
}

// lend gives the connection's buffer to others until the next head is awaited, unless something is in it or refers to it.
func (c *conn) lend() {
	if c.detached && c.r == c.w {
		c.giveBack()
	}
}

// giveBack gives the buffer, which has nothing in it, to others.
func (c *conn) giveBack() {
	if c.pooled == nil {
		return
	}
	c.server.buffers.Put(c.pooled)
	c.pooled, c.buf = nil, nil
	c.r, c.w, c.headEnd = 0, 0, 0
}

// borrow makes sure that the connection has a buffer.
func (c *conn) borrow() {
	if c.buf == nil {
		c.pooled = c.server.buffer()
		c.buf = c.pooled[:]
	}
}

// refuse keeps the refusal for the handler. Nothing more is read from the
// connection: where the next request would start is not known.
func (c *conn) refuse(bad *wire.Error) bool {
	c.refusal = status.Coded(bad.Code, bad.Message)
	c.ending, c.linger = true, true
	// A head that could not be parsed may still say that no body is expected.
	c.headOnly = bytes.HasPrefix(c.buf[:c.w], []byte("HEAD "))
	return true
}

func (c *conn) tooLarge(end int) *wire.Error {
	line := 0
	for line < c.w && c.buf[line] != '\n' {
		line++
	}
	if line > c.options.TargetBytes {
		return &wire.Error{Code: 414, Message: "the request target is too long"}
	}
	return &wire.Error{Code: 431, Message: "the head of the request is too large"}
}

// Write drops what fasthttp writes when the connection has been served, and
// sends what it writes to one that never was.
func (c *conn) Write(p []byte) (int, error) {
	if c.answered {
		return len(p), nil
	}
	return c.send(p)
}

// send sends bytes to the client; each part of them must be taken within the
// write timeout.
func (c *conn) send(p []byte) (int, error) {
	const part = 128 << 10
	sent := 0
	for {
		c.armWrite(c.server.o.WriteTimeout)
		n, err := c.Conn.Write(p[:min(len(p), part)])
		sent += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return sent, err
		}
	}
}

// Close closes the connection. A client that may be sending still gets a
// moment to read the answer first: closing a socket that has bytes unread
// resets the connection, and with it what the client has not read.
func (c *conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	if c.linger && !c.server.stopping.Load() {
		c.drainClient()
	}
	return c.Conn.Close()
}

func (c *conn) drainClient() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	scratch := c.server.buffer()
	defer c.server.buffers.Put(scratch)
	for left := lingerBytes; left > 0; {
		n, err := c.Conn.Read(scratch[:])
		if err != nil {
			return
		}
		left -= n
	}
}

const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// The deadlines are the connection's own; fasthttp's are not used.

// SetDeadline does nothing.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// armRead makes sure that a read ends after about d. A deadline that is at
// most an eighth too late is kept: to set one costs a good part of a system
// call. An error means that the connection is closed, which the read will say.
func (c *conn) armRead(d time.Duration) {
	least := time.Now().Add(d)
	if c.readBy.Before(least) || c.readBy.After(least.Add(d/8)) {
		c.setReadDeadline(least.Add(d / 8))
	}
}

func (c *conn) setReadDeadline(t time.Time) {
	c.readBy = t
	_ = c.Conn.SetReadDeadline(t)
}

func (c *conn) armWrite(d time.Duration) {
	least := time.Now().Add(d)
	if c.writeBy.Before(least) || c.writeBy.After(least.Add(d/8)) {
		c.setWriteDeadline(least.Add(d / 8))
	}
}

func (c *conn) setWriteDeadline(t time.Time) {
	c.writeBy = t
	_ = c.Conn.SetWriteDeadline(t)
}

func isTimeout(err error) bool {
	t, ok := err.(net.Error)
	return ok && t.Timeout()
}
