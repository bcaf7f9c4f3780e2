package upstream

import (
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// roundTrip implements link.
func (c *conn) roundTrip(s slot, req *Request, resp *message.Response) error {
	var sending *sending
	if req.Upload != nil {
		if err := c.sendHead(req, &s); err != nil {
			c.transport.pool.put(s.conn, false, outcomeOf(err, req, s.isFresh), time.Now())
			return err
		}
		sending = c.transport.begin(c, req)
	} else if err := c.send(req, &s); err != nil {
		c.transport.pool.put(s.conn, false, outcomeOf(err, req, s.isFresh), time.Now())
		return err
	}
	br := c.transport.reader(c)
	reception := reception{transport: c.transport, cn: c, held: s.conn, br: br, req: req, resp: resp, sending: sending}
	stream, err := reception.receive()
	switch {
	case err != nil:
		sending.end()
		err = sending.orFailed(err)
		c.transport.release(s.conn, br, false, outcomeOf(err, req, s.isFresh))
		return err
	case req.Tunnel != nil:
		pool, held := c.transport.pool, s.conn
		pool.answered(held, outcomeOfStatus(c.answer.Status, req))
		c.transport.readers.Put(br)
		req.Tunnel.close = func() { pool.put(held, false, balance.Inconclusive, time.Now()) }
		return nil
	case stream != nil:
		c.transport.pool.answered(s.conn, outcomeOfStatus(c.answer.Status, req))
		resp.SetStream(stream)
		return nil
	}
	c.transport.release(s.conn, br, sending.finish() && !c.answer.Close, outcomeOfStatus(c.answer.Status, req))
	return nil
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
		failure.again = notSent
	default:
		failure.again = noAnswer
	}
	return failure
}

// sendHead sends the head of a request whose body is sent while it comes.
func (c *conn) sendHead(req *Request, s *slot) error {
	err := c.armWrite(s.now, req.answerTimeout(&c.transport.config.Timeouts), s.deadline)
	if err == nil {
		c.readBy = time.Time{}
		err = c.Conn.SetReadDeadline(time.Time{}) // the client may take its time
	}
	if err == nil {
		_, err = c.Conn.Write(req.Head)
	}
	if err == nil {
		return nil
	}
	failure := ioFailed(false, err)
	failure.again = notSent // nothing of the upload was read yet, and no request is complete without it
	return failure
}
