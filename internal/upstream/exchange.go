package upstream

import (
	"bufio"
	"errors"
	"time"

	"github.com/valyala/fasthttp"
)

// Request is one request to the backend.
type Request struct {
	// Head is the whole head, the empty line included, with a Content-Length
	// that fits Body. It is written byte for byte.
	Head []byte
	Body []byte
	// HeadOnly is set for HEAD, whose answer has no body.
	HeadOnly bool
	// Idempotent requests change nothing: they may be sent once more where the
	// connection ended before a byte of the answer came.
	Idempotent bool
	// Whole asks for the body in one piece, at most so many bytes; a larger
	// one fails. Zero lets all but small bodies be streamed.
	Whole int64
	// Deadline, if set, bounds the exchange up to the end of the head, or of
	// the body where that is read whole.
	Deadline time.Time
	// Verbatim, if set, takes the answer instead of the response that is given
	// to Do, where it is no error and small and of known size. Its Status tells.
	Verbatim *Answer
	// Upgrade is the protocol that the head asks to go on in; nil for none. A backend that agrees does not answer: Tunnel
	// is set.
	Upgrade []byte
	Tunnel  *Tunnel
}

const (
	// briefly is how long a connection may have been unused for a read to be sent on it without a look whether it has
	// ended: a look is a system call, of no use against what happens right after it, and a read can be sent again.
	briefly = 100 * time.Microsecond
	// maxInterim bounds the 1xx answers before the one that counts.
	maxInterim = 16
	// maxErrorBody is up to what size the bodies of errors are read whole
	// whatever their framing, for they are small and may have to be reworded.
	maxErrorBody = SmallBody
)

// attempt is what is known of a request while it is sent, perhaps several times.
type attempt struct {
	start    time.Time // of the request
	now      time.Time // of this attempt
	deadline time.Time // of all attempts; zero where there is none yet
	tried    tried
	endpoint *endpoint // of this attempt, nil before there is one
	admitted bool      // the circuit let it pass, and the retry budget knows of it
	fresh    bool      // this attempt's connection was made for it
	resent   bool      // it was sent a second time, although it may have arrived
	probe    int       // it is to show whether the circuit can be closed: its number
}

// Do sends the request and reads the answer into resp: the head without its
// hop-by-hop lines, and the body, which is in resp.Body() where it was small,
// already there, that of an error, or asked for whole; else resp.BodyStream()
// is a *Body that must be closed. The error is an *Error.
func (c *Client) Do(req *Request, resp *fasthttp.Response) error {
	now := time.Now()
	try := attempt{start: now, now: now, deadline: req.Deadline}
	for {
		if req.Verbatim != nil {
			req.Verbatim.Status = 0
		}
		err := c.exchange(req, resp, &try)
		if err != nil && c.repeats(err, req, &try) {
			continue
		}
		if try.probe != 0 {
			c.pool.endProbe(try.probe)
		}
		if err == nil {
			return nil
		}
		if c.config.OnError != nil {
			c.config.OnError(err)
		}
		return err
	}
}

// repeats tells whether the request is sent again after a failure, and prepares for that.
func (c *Client) repeats(err *Error, req *Request, try *attempt) bool {
	now := time.Now()
	if try.deadline.IsZero() || try.deadline.Sub(try.start) > c.config.AnswerTimeout {
		try.deadline = try.start.Add(c.config.AnswerTimeout)
	}
	if !now.Before(try.deadline) {
		return false
	}
	switch {
	case err.again == notSent && !try.fresh:
		// The connection had ended while it was unused: that says nothing of the endpoint.
	case err.again == notSent:
		if !try.tried.add(try.endpoint) || !c.pool.hasOther(&try.tried) {
			return false
		}
		c.retried.Add(1)
	case err.again == noAnswer && req.Idempotent && !try.resent:
		try.tried.add(try.endpoint)
		if try.fresh && !c.pool.hasOther(&try.tried) || !c.pool.mayResend(now) {
			// Where there is no other endpoint, a fresh connection that ends is the backend's way to answer.
			return false
		}
		try.resent = true
		c.retried.Add(1)
	default:
		return false
	}
	try.now, try.endpoint = now, nil
	return true
}

// exchange makes one attempt.
func (c *Client) exchange(req *Request, resp *fasthttp.Response, try *attempt) *Error {
	cn, err := c.acquire(req, try)
	if err != nil {
		return err
	}
	if sent, err := c.send(cn, req, try); err != nil {
		e := c.ioFailed(sent, err)
		switch {
		case e.Kind != Broken:
		case !sent:
			e.again = notSent
		default:
			e.again = noAnswer
		}
		c.pool.put(cn, false, c.blames(e, req, try), time.Now())
		return e
	}
	br := c.reader(cn)
	stream, failure := c.receive(cn, br, req, resp)
	switch {
	case failure != nil:
		c.readers.Put(br)
		c.pool.put(cn, false, c.blames(failure, req, try), time.Now())
		return failure
	case req.Tunnel != nil:
		c.pool.answered(cn, verdictOf(cn.answer.Status, req))
		c.readers.Put(br)
		req.Tunnel.close = func() { c.pool.put(cn, false, noVerdict, time.Now()) }
		return nil
	case stream != nil:
		c.pool.answered(cn, verdictOf(cn.answer.Status, req))
		resp.SetBodyStream(stream, int(stream.length))
		resp.Header.ResetConnectionClose()
		return nil
	}
	c.release(cn, br, !cn.answer.Close, verdictOf(cn.answer.Status, req))
	return nil
}

// acquire gets a connection that the request can be sent on.
func (c *Client) acquire(req *Request, try *attempt) (*conn, *Error) {
	for {
		if !try.deadline.IsZero() && !try.now.Before(try.deadline) {
			return nil, c.failed(TooSlow, false, nil)
		}
		g, err := c.pool.get(try)
		if err != nil {
			return nil, c.notAcquired(err)
		}
		try.endpoint, try.fresh = g.endpoint, g.conn == nil
		if g.conn == nil {
			return c.connect(g.endpoint, req, try)
		}
		cn := g.conn
		if req.Idempotent && try.now.Sub(cn.freed) <= briefly || !cn.stale() {
			return cn, nil
		}
		c.pool.put(cn, false, noVerdict, try.now)
	}
}

// connect makes a connection that the pool has given leave for.
func (c *Client) connect(e *endpoint, req *Request, try *attempt) (*conn, *Error) {
	timeout := c.config.ConnectTimeout
	if !try.deadline.IsZero() {
		// The wait for the leave may have taken all the time there was.
		timeout = min(timeout, time.Until(try.deadline))
	}
	cn, err := c.dial(e, timeout)
	if err == nil {
		c.dialled.Add(1)
		return cn, nil
	}
	failure := c.failed(Unreachable, false, err)
	failure.again = notSent
	if isTimeout(err) && !try.deadline.IsZero() && !time.Now().Before(try.deadline) {
		failure = c.failed(TooSlow, false, err)
	}
	c.pool.unmade(e, c.blames(failure, req, try), time.Now())
	return nil, failure
}

// notAcquired is the failure to get a connection or leave to make one.
func (c *Client) notAcquired(err error) *Error {
	var dial *dialError
	var open *openError
	switch {
	case errors.As(err, &open):
		return c.refused(open)
	case errors.As(err, &dial):
		return c.failed(Unreachable, false, err)
	case err == errDeadline:
		return c.failed(TooSlow, false, err)
	}
	return c.failed(Busy, false, err)
}

// blames tells what a failed exchange shows of the endpoint.
func (c *Client) blames(e *Error, req *Request, try *attempt) verdict {
	switch {
	case e.Kind == TooLarge, e.Kind == Busy:
		return noVerdict
	case e.Kind == TooSlow && !req.Deadline.IsZero() && !time.Now().Before(req.Deadline):
		// The client was in a hurry.
		return noVerdict
	case e.again != never && !try.fresh:
		// It ended an unused connection, which is its good right, right when it was used.
		return noVerdict
	}
	return bad
}

// send sends the request on a connection. sent tells whether a byte of it may have left.
func (c *Client) send(cn *conn, req *Request, try *attempt) (sent bool, err error) {
	if err := cn.armWrite(try.now, c.config.AnswerTimeout, try.deadline); err != nil {
		return false, err
	}
	if err := cn.armRead(try.now, c.config.AnswerTimeout, try.deadline); err != nil {
		return false, err
	}
	return c.write(cn, req.Head, req.Body)
}

// reader returns a buffer over the connection; it goes back to c.readers.
func (c *Client) reader(cn *conn) *bufio.Reader {
	if br, ok := c.readers.Get().(*bufio.Reader); ok {
		br.Reset(cn)
		return br
	}
	return bufio.NewReaderSize(cn, c.config.HeadBytes)
}

// release ends the use of a connection: it is kept for the next exchange if it is reusable, else closed.
func (c *Client) release(cn *conn, br *bufio.Reader, reusable bool, v verdict) {
	c.readers.Put(br)
	c.pool.put(cn, reusable, v, time.Now())
}
