package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/upstream"
)

// copyBuffer is how much of a stream is held at once. Two of the system calls
// that half of it would take cost more than its memory, which a stream holds
// only while there is something to send.
const copyBuffer = 64 << 10

// errClientLeft is what a stream ends with when the client has gone.
var errClientLeft = errors.New("the client closed the connection before the answer was complete")

// sendStream sends ctx.Response, whose body is a stream of the backend, and
// returns how many bytes of body went out. Bytes leave as soon as they have
// arrived. An answer that breaks off ends the connection, without the mark of
// a complete body. Where endless is set the stream may be ended when the
// server shuts down: its bytes are events, and the client comes again. What
// completes the body, if anything does, is e; where it fails before anything was
// sent, c.answered is not set.
func (c *conn) sendStream(ctx *fasthttp.RequestCtx, endless bool, e *filling) (int64, error) {
	body, ok := ctx.Response.BodyStream().(*upstream.Body)
	if !ok {
		return 0, errors.New("the answer has no stream")
	}
	defer ctx.Response.ResetBody()
	length := body.Length()
	if e != nil {
		length = -1
	}
	c.answered = e == nil
	head := c.streamHead(ctx, length)
	if c.headOnly {
		_, err := c.send(head)
		return 0, err
	}
	if body.Length() < 0 {
		// Only the end of the connection tells in time that nobody reads on.
		c.lend()
		stop := c.onClientClose(body.Interrupt)
		defer stop()
	}
	c.stream.Store(body)
	defer c.stream.Store(nil)
	if endless {
		c.endless.Store(true)
		defer c.endless.Store(false)
		if c.server.stopping.Load() {
			body.Interrupt()
		}
	}
	var sent int64
	var err error
	if chunked := length < 0 && c.head.Minor > 0; e == nil {
		sent, err = c.copyStream(head, body, chunked)
	} else {
		sent, err = c.copyFilled(head, body, e, chunked)
	}
	if err == nil || !c.answered {
		return sent, err
	}
	if endless && errors.Is(err, upstream.ErrInterrupted) && c.server.stopping.Load() {
		if c.head.Minor > 0 {
			_, err = c.send([]byte("0\r\n\r\n"))
			return sent, err
		}
		return sent, nil
	}
	c.abandon(length < 0 && c.head.Minor == 0)
	if errors.Is(err, upstream.ErrInterrupted) {
		err = errClientLeft
	}
	return sent, err
}

// streamHead settles the framing towards the client and returns the head. The
// length is -1 where it is not known.
func (c *conn) streamHead(ctx *fasthttp.RequestCtx, length int64) []byte {
	c.settle()
	h := &ctx.Response.Header
	switch {
	case length >= 0:
		h.SetContentLength(int(length))
	case c.head.Minor > 0:
		h.SetContentLength(-1)
	default:
		// HTTP/1.0 knows no chunks: the end of the connection ends the body.
		h.Del(fasthttp.HeaderTransferEncoding)
		c.ending = true
	}
	c.setConnection(h)
	return h.Header()
}

// copyStream writes head and body. Each write carries what has arrived by
// then, as one chunk where the body is chunked.
func (c *conn) copyStream(head []byte, body *upstream.Body, chunked bool) (sent int64, err error) {
	if len(head) > copyBuffer/2 || !body.Ready() {
		if _, err := c.send(head); err != nil {
			return 0, errors.Join(errClientLeft, err)
		}
		head = nil
	}
	for err == nil {
		// A body of known length comes at once and is read straight to its
		// place; any other may pause for hours, without memory.
		if body.Length() < 0 {
			if err = body.Wait(); err != nil && err != io.EOF {
				return sent, err
			}
		}
		var n int
		var werr error
		n, err, werr = c.copyPart(head, body, chunked)
		head = nil
		if werr != nil {
			return sent, errors.Join(errClientLeft, werr)
		}
		sent += int64(n)
	}
	if err == io.EOF {
		err = nil
	}
	return sent, err
}

// copyPart copies n bytes of the body, what has arrived of it.
func (c *conn) copyPart(head []byte, body *upstream.Body, chunked bool) (n int, err, werr error) {
	const (
		size = len("10000\r\n") // in front of a chunk
		last = len("\r\n0\r\n\r\n")
	)
	buf := c.server.copyBuffer()
	defer c.server.copies.Put(buf)
	start, end := len(head), len(buf)-last
	if chunked {
		start += size
	}
	m := 0
	m, err = body.Read(buf[start:end])
	for n = m; err == nil && m > 0 && start+n < end; n += m {
		m, err = body.ReadReady(buf[start+n : end])
	}
	from, to := start, start+n
	if chunked {
		if n > 0 {
			from = putChunkSize(buf[:start], n)
			to += copy(buf[to:], "\r\n")
		}
		if err == io.EOF {
			to += copy(buf[to:], "0\r\n\r\n")
		}
	}
	from -= copy(buf[from-len(head):from], head)
	if from < to {
		_, werr = c.send(buf[from:to])
	}
	return n, err, werr
}

// putChunkSize writes the size line of a chunk of n bytes to the end of b and
// returns where it starts.
func putChunkSize(b []byte, n int) int {
	i := len(b) - 2
	b[i], b[i+1] = '\r', '\n'
	for ; n > 0; n >>= 4 {
		i--
		b[i] = "0123456789abcdef"[n&15]
	}
	return i
}

// abandon ends the connection after a body that is not complete. Where the end
// of the connection is what ends a body, a reset tells the client that this
// end is not the body's.
func (c *conn) abandon(reset bool) {
	c.ending = true
	if !reset {
		return
	}
	nc := c.Conn
	secure, ok := nc.(*tls.Conn)
	if ok {
		nc = secure.NetConn()
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
	if ok {
		_ = nc.Close() // else the end of TLS would be sent, which says that the body is complete
	}
}

// onClientClose calls gone, from another goroutine, when the client closes the
// connection, until stop is called. What the client sends meanwhile is kept for
// when the stream is over, as far as there is room: then the client is no longer
// watched, and a write tells in time.
func (c *conn) onClientClose(gone func()) (stop func()) {
	if _, ok := c.Conn.(*tls.Conn); ok {
		return c.onSecureClientClose(gone)
	}
	tc, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return func() {}
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return func() {}
	}
	c.setReadDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.watchClient(raw) {
			gone()
		}
	}()
	return func() {
		c.setReadDeadline(time.Unix(1, 0))
		<-done
		c.setReadDeadline(time.Time{})
	}
}

// watchClient reads what the client sends into the connection's buffer, which
// nobody else uses for the time. It returns true when the client has closed the
// connection.
func (c *conn) watchClient(raw syscall.RawConn) (gone bool) {
	for {
		closed := false
		err := raw.Read(func(fd uintptr) bool {
			var waits bool
			closed, waits = peekClosed(fd)
			return !waits
		})
		if closed || err != nil {
			return closed || !isTimeout(err)
		}
		if c.borrow(); c.w == len(c.buf) {
			return false
		}
		n, err := c.Conn.Read(c.buf[c.w:])
		c.w += n
		if err != nil {
			return !isTimeout(err)
		}
	}
}

func (s *server) copyBuffer() *[copyBuffer]byte {
	if b, ok := s.copies.Get().(*[copyBuffer]byte); ok {
		return b
	}
	return new([copyBuffer]byte)
}
