package upstream

import (
	"time"

	"github.com/admission-gateway/gateway/internal/clock"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/secure"
	"github.com/admission-gateway/gateway/internal/stack"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// roundTrip implements link.
func (c *conn) roundTrip(s slot, req *Request, resp *message.Response) error {
	if !req.await(c) {
		c.transport.pool.put(s.conn, true, balance.Inconclusive, time.Now())
		return newError(Abandoned, false, presence.ErrLeft)
	}
	c.isUsed = !s.isFresh
	sending, err := c.begun(req, &s)
	if err != nil {
		req.done()
		err = req.orAbandoned(err)
		c.transport.watches(req, err, false)
		c.transport.pool.put(s.conn, false, outcomeOf(err, req, s.isFresh), time.Now())
		return err
	}
	if c.br == nil {
		c.br = c.transport.reader(c)
	}
	reception := http1Receiver{cn: c, bodyReceiver: bodyReceiver{config: c.transport.config, from: c, req: req,
		resp: resp, sending: sending, length: -1}}
	stream, err := reception.receive()
	c.over(req)
	switch {
	case err != nil:
		sending.end()
		err = req.orAbandoned(sending.orFailed(err))
		if c.transport.watches(req, err, !reception.isHeadThere) {
			c.watch(s, err, outcomeOf(err, req, s.isFresh))
			return err
		}
		c.end(false, outcomeOf(err, req, s.isFresh), clock.After(s.now))
		return err
	case req.Tunnel != nil:
		pool, held := c.transport.pool, s.conn
		pool.answered(held, outcomeOfStatus(c.answer.Status, req))
		c.dropReader()
		req.Tunnel.close = func() { pool.put(held, false, balance.Inconclusive, time.Now()) }
		return nil
	case stream != nil:
		c.transport.pool.answered(s.conn, outcomeOfStatus(c.answer.Status, req))
		resp.SetStream(stream)
		return nil
	}
	c.end(sending.finish() && !c.answer.Close, outcomeOfStatus(c.answer.Status, req), clock.After(s.now))
	return nil
}

// begun sends a request, or begins to send one whose body is sent while it comes.
func (c *conn) begun(req *Request, s *slot) (*uploadSender, error) {
	if req.Upload == nil {
		return nil, c.send(req, s)
	}
	if err := c.sendHead(req, s); err != nil {
		return nil, err
	}
	c.writeBy = time.Time{} // from now on each part sets its own deadline
	return c.transport.begin(c, req), nil
}

// Abandon implements presence.Waiter: what is read or written fails. Who sets a deadline looks afterwards whether the
// client has left.
func (c *conn) Abandon() { _ = c.SetDeadline(time.Unix(1, 0)) }

// over ends the wait for an answer.
func (c *conn) over(req *Request) {
	if req.done(); req.isAbandoned() {
		c.readBy, c.writeBy = time.Time{}, time.Time{} // those that are set have passed
	}
}

// send sends a request whose body is in memory. If that fails, the error says whether a byte of it may have left.
func (c *conn) send(req *Request, s *slot) error {
	sent, err := c.transport.write(c, req, s)
	if err == nil {
		return nil
	}
	failure := ioFailed(sent, err)
	switch {
	case failure.Kind != Broken:
	case !sent:
		failure.retry = notSent
	default:
		failure.retry = noAnswer
	}
	return failure
}

// sendHead sends the head of a request whose body is sent while it comes.
func (c *conn) sendHead(req *Request, s *slot) error {
	err := c.armWrite(s.now, req.answerTimeout(&c.transport.config.Timeouts), s.deadline)
	if err == nil {
		c.readBy = time.Time{}
		err = c.Conn.SetReadDeadline(req.Deadline) // the client may take its time, as far as there is a deadline
	}
	if err == nil && req.isAbandoned() {
		err = presence.ErrLeft
	}
	if err == nil && c.isUsed {
		err = c.unasked()
	}
	if err == nil {
		c.isEarly, c.written = false, len(req.Head)
		_, err = c.Conn.Write(req.Head)
		if err == nil && c.hasEarly() {
			err = c.unasked()
		}
		c.isEarly, c.written = false, 0 // later the backend may answer before all has come
	}
	if err == nil {
		return nil
	}
	failure := ioFailed(false, err)
	failure.retry = notSent // nothing of the upload was read yet, and no request is complete without it
	return failure
}

// http1Receiver reads one answer of HTTP/1.1.
type http1Receiver struct {
	bodyReceiver
	cn          *conn
	isHeadThere bool
}

// receive reads the answer. A body that is to be streamed comes back as one.
func (r *http1Receiver) receive() (*Body, error) {
	br := r.cn.br
	n, err := readHead(r.cn, br)
	if err != nil {
		return nil, err
	}
	r.isHeadThere = true
	r.sending.answered()
	cn, req := r.cn, r.req
	a := &cn.answer
	if a.Status == 101 {
		return nil, switchProtocol(cn, br, req, n)
	}
	if req.Upgrade != nil {
		a.Close = true // what the backend may read on the connection as the new protocol is not known
	}
	if a.NoBody(req.HeadOnly) && (a.Chunked || a.ContentLength > 0) {
		a.Close = true // a backend that sends the body that it announces, later, would answer the next request with it
	}
	cn.frame = frameOf(a, req.HeadOnly)
	if cn.frame.kind == frameClose {
		a.Close = true
	}
	if r.status = a.Status; cn.frame.kind == frameNone {
		r.length = 0
	} else {
		r.length = a.ContentLength
	}
	b, _ := br.Peek(n)
	r.resp.ReceiveParsed(a, b)
	_, _ = br.Discard(n)
	stream, err := r.takeBody()
	if stream != nil || err != nil {
		return stream, err
	}
	return nil, r.checkSurplus()
}

// checkSurplus makes sure that nothing follows the answer. A server that sent more than it
// announced, and one that answers a request that was not sent, cannot be distinguished.
func (r *http1Receiver) checkSurplus() error {
	if r.cn.frame.kind == frameClose {
		return nil
	}
	surplus, end := r.cn.ahead()
	r.cn.answer.Close = r.cn.answer.Close || end
	if surplus || r.cn.br.Buffered() > 0 {
		r.cn.countSurplus()
		return malformed("bytes follow the end of the answer")
	}
	return nil
}

// arm implements source.
func (cn *conn) arm(now time.Time, d time.Duration, by time.Time) error {
	return cn.armRead(now, d, by)
}

// read implements source.
func (cn *conn) read(p []byte, wait bool) (int, error) {
	cn.isHasty = !wait
	n, err := cn.frame.read(cn.br, p)
	cn.isHasty = false
	if err == errNotYet {
		err = nil
	}
	return n, err
}

// buffered implements source.
func (cn *conn) buffered() int { return cn.br.Buffered() }

// hasMore implements source.
func (cn *conn) hasMore() bool { return cn.isMore }

// isOver implements source.
func (cn *conn) isOver() bool { return cn.frame.done() }

// wait implements source. Others use the connection's buffer meanwhile.
func (cn *conn) wait() error {
	cn.dropReader()
	err := cn.await()
	cn.br = cn.transport.reader(cn)
	return err
}

// prepare implements source. To decrypt takes many calls and a large stack.
func (cn *conn) prepare() {
	if _, isSecure := cn.Conn.(*secure.Conn); isSecure {
		stack.Widen()
	}
}

// interrupt implements source. If it fails the connection is dead, and a read sees that.
func (cn *conn) interrupt() { _ = cn.SetReadDeadline(time.Unix(1, 0)) }

// trailers implements source.
func (cn *conn) trailers() []message.Header { return nil }

// release implements source.
func (cn *conn) release(isWhole bool, o balance.Outcome) {
	if isWhole && cn.frame.kind != frameClose {
		surplus, end := cn.ahead()
		surplus = surplus || cn.br.Buffered() > 0
		if surplus {
			cn.countSurplus()
		}
		isWhole = !cn.answer.Close && !surplus && !end
	}
	cn.end(isWhole, o, time.Now())
}

// end ends the use of a connection now: it is kept for the next exchange if it is reusable, else closed.
func (cn *conn) end(isReusable bool, o balance.Outcome, now time.Time) {
	cn.dropReader()
	cn.transport.pool.put(cn.held, isReusable, o, now)
}

// dropReader gives the buffer over the connection back.
func (cn *conn) dropReader() {
	cn.transport.readers.Put(cn.br)
	cn.br = nil
}
