package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// maxRefused is how often a request that the backend did not process is sent again.
const maxRefused = 5

// Do sends the request and reads the answer into resp: the head without its hop-by-hop lines, and the body. The body is
// a stream, which must be closed, unless it was small, already there, an error's, or asked for whole. The error is an
// *Error.
func (c *Client) Do(req *Request, resp *message.Response) error {
	now := req.Start
	if now.IsZero() {
		now = time.Now()
	}
	try := attempt{start: now, now: now, deadline: req.Deadline, isOwn: req.Upgrade != nil && c.dialer.mayBeHTTP2()}
	for {
		err := c.exchange(req, resp, &try)
		if err != nil && c.shouldRepeat(err, req, &try) {
			continue
		}
		if try.probe != 0 {
			c.pool.endProbe(try.probe)
		}
		if err != nil {
			c.report(err, req)
		}
		return err
	}
}

// report completes the failure of an exchange, and has it noted if it shows something of the backend.
func (c *Client) report(err error, req *Request) {
	var failure *Error
	if !errors.As(err, &failure) {
		return
	}
	failure.setRetryAfter(&c.config)
	if c.config.OnError != nil && failure.Kind != NoMemory && failure.Kind != ClientFailed &&
		failure.Kind != Abandoned && !req.isImpatience(failure) {
		c.config.OnError(failure)
	}
}

// shouldRepeat reports whether the request is sent again after a failure, and prepares for that.
func (c *Client) shouldRepeat(err error, req *Request, try *attempt) bool {
	now := time.Now()
	if limit := req.answerTimeout(&c.config.Timeouts); try.deadline.IsZero() || try.deadline.Sub(try.start) > limit {
		try.deadline = try.start.Add(limit)
	}
	var failure *Error
	if !now.Before(try.deadline) || !errors.As(err, &failure) {
		return false
	}
	switch {
	case failure.retry == refused:
		// A server that leaves, or restarts, makes many requests fail so at once: the first time is not counted.
		if try.refused++; try.refused > maxRefused || try.refused > 1 && !c.pool.mayResend(now) {
			return false
		}
		c.retried.Add(1)
	case failure.retry == byHTTP1:
		if try.isOwn || c.config.Protocol != Auto {
			return false
		}
		try.isOwn = true
		c.retried.Add(1)
	case failure.retry == notSent && !try.fresh:
		// The connection had ended while it was unused: that says nothing of the endpoint.
	case failure.retry == notSent && try.tried.Add(try.endpoint) && c.pool.hasOther(&try.tried):
		c.retried.Add(1)
	case failure.retry == notSent && !try.rejoined && c.pool.mayJoin(try.endpoint):
		// No connection could be made, but the endpoint has others that many requests share.
		try.rejoined = true
		c.retried.Add(1)
	case failure.retry == noAnswer && req.Idempotent && !try.resent:
		try.tried.Add(try.endpoint)
		if try.fresh && !c.pool.hasOther(&try.tried) || !c.pool.mayResend(now) {
			// If there is no other endpoint, a fresh connection that ends is the backend's way to answer.
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
func (c *Client) exchange(req *Request, resp *message.Response, try *attempt) error {
	cn, err := c.acquire(req, try)
	if err != nil {
		return err
	}
	return cn.link.roundTrip(slot{conn: cn, isFresh: try.fresh, now: try.now, deadline: try.deadline}, req, resp)
}

// acquire gets a slot of a connection that the request can be sent on.
func (c *Client) acquire(req *Request, try *attempt) (*connection, error) {
	for {
		if !try.deadline.IsZero() && !try.now.Before(try.deadline) {
			return nil, newError(TooSlow, false, nil)
		}
		g, err := c.pool.get(try, req.Client)
		if err != nil {
			return nil, notAcquired(err)
		}
		try.endpoint, try.fresh = g.endpoint, g.conn == nil
		if g.conn == nil {
			return c.connect(g, req, try)
		}
		if g.isShared || !g.conn.link.isStale() {
			return g.conn, nil
		}
		c.pool.put(g.conn, false, balance.Inconclusive, try.now)
	}
}

// connect makes a connection that the pool has given leave for.
func (c *Client) connect(g grant, req *Request, try *attempt) (*connection, error) {
	timeout := c.config.Timeouts.Connect
	if !try.deadline.IsZero() {
		// The wait for the leave may have taken all the time there was.
		timeout = min(timeout, time.Until(try.deadline))
	}
	protocol := c.config.Protocol
	if try.isOwn {
		protocol = HTTP1
	}
	cn, err := c.dialFor(req.Client, protocol, g.endpoint, timeout)
	if err == nil {
		c.dialled.Add(1)
		c.pool.made(cn)
		cn.link.begin(cn)
		return cn, nil
	}
	failure := newError(Unreachable, false, err)
	failure.retry = notSent
	if req.Client.HasLeft() {
		failure = newError(Abandoned, false, presence.ErrLeft)
	} else if isTimeout(err) && !try.deadline.IsZero() && !time.Now().Before(try.deadline) {
		failure = newError(TooSlow, false, err)
	}
	if descriptors.IsShortage(err) {
		failure = newError(Busy, false, err)
		failure.message = "the gateway has no file descriptor for a connection to the backend"
	}
	o := outcomeOf(failure, req, try.fresh)
	if o == balance.Inconclusive {
		err = nil // others may have the time that this request does not have
	}
	c.pool.lost(g, err, o, time.Now())
	return nil, failure
}

// dialFor makes a connection for a request, unless its client leaves.
func (c *Client) dialFor(client *presence.Client, protocol Protocol, e *endpoint,
	timeout time.Duration) (*connection, error) {
	ctx, done := client.Context(context.Background())
	defer done()
	return c.dialBy(ctx, protocol, e, timeout)
}

// dialBy makes a connection to an endpoint by a protocol.
func (c *Client) dialBy(ctx context.Context, protocol Protocol, e *endpoint,
	timeout time.Duration) (*connection, error) {
	isOwn := protocol != c.config.Protocol
	made := &connection{endpoint: e, generation: c.pool.generation(), isOwn: isOwn, slots: 1}
	cn, multiplexed, err := c.dialer.dial(ctx, e, timeout, protocol)
	switch {
	case err != nil:
		return nil, err
	case !isOwn:
		c.isHTTP1.Store(multiplexed == nil)
	}
	switch {
	case multiplexed != nil:
		made.link, made.slots = &session{conn: multiplexed, transport: &c.transport, scheme: c.dialer.scheme()},
			multiplexed.Streams()
	default:
		cn.transport = &c.transport
		made.link = cn
	}
	return made, nil
}

// notAcquired is the failure to get a connection or leave to make one.
func notAcquired(err error) error {
	var dial *dialError
	var open *circuit.OpenError
	switch {
	case errors.As(err, &open):
		return refusedBy(open)
	case errors.As(err, &dial):
		return newError(Unreachable, false, err)
	case err == errDeadline:
		return newError(TooSlow, false, err)
	case err == presence.ErrLeft:
		return newError(Abandoned, false, err)
	}
	return newError(Busy, false, err)
}

// outcomeOf returns what a failed exchange shows of the endpoint.
func outcomeOf(err error, req *Request, isFresh bool) balance.Outcome {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return balance.Failed
	case e.Kind == TooLarge, e.Kind == Busy, e.Kind == NoMemory, e.Kind == ClientFailed, e.Kind == Abandoned:
		return balance.Inconclusive
	case req.isImpatience(e), e.retry == refused, e.retry == byHTTP1:
		return balance.Inconclusive
	case e.retry != never && !isFresh:
		return balance.Inconclusive // a server may end an unused connection, if only right when it was used
	}
	return balance.Failed
}

// outcomeOfStatus returns what the status of the answer to a request shows.
func outcomeOfStatus(status int, req *Request) balance.Outcome {
	switch {
	case status == 504 && !req.Deadline.IsZero():
		return balance.Inconclusive // the client may not have given it the time
	case status >= 502 && status <= 504:
		return balance.Unavailable
	}
	return balance.Answered
}
