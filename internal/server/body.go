package server

import (
	"time"

	"github.com/admission-gateway/gateway/internal/h1"
	"github.com/admission-gateway/gateway/internal/status"
)

// A bodyState says how far the body of a request was read.
type bodyState uint8

const (
	bodyUnread bodyState = iota
	bodyRead             // to its end; or there is none
	bodyBroken           // it cannot be read to its end
)

// ReadBody implements Exchange. After an error the connection ends with the answer.
func (x *exchange) ReadBody(limit int64) ([]byte, error) {
	if x.body == bodyRead {
		return nil, nil
	}
	if err := x.receiveBody(limit); err != nil {
		x.body = bodyBroken
		return nil, err
	}
	x.body, x.size = bodyRead, len(x.request.body.bytes)
	return x.request.body.bytes, nil
}

// BodyBytes implements Exchange.
func (x *exchange) BodyBytes() int64 {
	if u := x.upload; u != nil {
		return u.taken.Load()
	}
	return int64(x.size)
}

func (x *exchange) receiveBody(limit int64) error {
	in, length := &x.conn.in, x.request.Head.ContentLength
	if length > limit {
		return tooLargeBody(limit)
	}
	if x.HasArrived() {
		x.request.body.bytes = in.buf[in.r : in.r+int(length)]
		in.r += int(length)
		return nil
	}
	if err := x.expect(); err != nil {
		return err
	}
	x.conn.socket.setReadDeadline(time.Now().Add(x.conn.server.settings.Load().BodyTimeout))
	if length < 0 {
		c := chunkReader{in: in, buffer: &x.request.body, start: x.headEnd, limit: limit}
		return c.read()
	}
	return x.request.body.readLength(in, int(length))
}

// expect asks the client for the body, if it waits for that.
func (x *exchange) expect() error {
	if x.request.Head.Expect {
		if _, err := x.conn.send([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return bodyCut()
		}
	}
	return nil
}

// readLength reads a body of known length: into the buffer of the connection, or if that is too
// small into memory.
func (b *bodyBuffer) readLength(in *input, length int) error {
	end := min(in.r+length, len(in.buf))
	for in.w < end {
		if n, err := in.fill(); n == 0 {
			return bodyError(err)
		}
	}
	there := in.buf[in.r:end]
	in.r = end
	if len(there) == length {
		b.bytes = there
		return nil
	}
	if err := b.enlarge(min(length, max(promised*len(there), firstBody))); err != nil {
		return err
	}
	if err := b.append(there, length); err != nil {
		return err
	}
	for len(b.bytes) < length {
		if err := b.fill(in, length); err != nil {
			return err
		}
	}
	return nil
}

// fill reads straight from the socket into the body, which is announced to become so long.
func (b *bodyBuffer) fill(in *input, most int) error {
	room, err := b.room(most, promised)
	if err != nil {
		return err
	}
	n, failed := in.socket.Read(room)
	if b.grow(n); n == 0 {
		return bodyError(failed)
	}
	return nil
}

// A chunkReader decodes a chunked body: in place as long as the buffer of the connection has room,
// and then into memory. Trailers are read and dropped: a header that comes after the body has not
// been checked.
type chunkReader struct {
	in     *input
	buffer *bodyBuffer
	start  int // of the body in the connection's buffer
	end    int // of the data that was decoded in place
	limit  int64
	chunk  h1.Chunked
}

// leastRoom is the room that makes a read worth while.
const leastRoom = 512

func (c *chunkReader) read() error {
	in := c.in
	if len(in.buf)-c.start < leastRoom {
		in.grow(len(in.buf) + readBuffer) // the head fills the buffer, and is in use for as long as the request
	}
	c.end = c.start
	for !c.chunk.Done() {
		if c.size()+c.chunk.Left() > c.limit {
			return tooLargeBody(c.limit)
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	if !c.buffer.hasMemory() {
		c.buffer.bytes = in.buf[c.start:c.end]
	}
	return nil
}

// size returns how much of the body was decoded.
func (c *chunkReader) size() int64 { return int64(len(c.buffer.bytes) + c.end - c.start) }

// most is how long the body may become.
func (c *chunkReader) most() int { return int(min(c.limit, 1<<40)) }

// step uses what the connection's buffer has, or reads more.
func (c *chunkReader) step() error {
	in, left := c.in, int(c.chunk.Left())
	switch n := min(left, in.w-in.r); {
	case n > 0:
		return c.take(n)
	case left > 0 && c.buffer.hasMemory():
		had := len(c.buffer.bytes)
		if err := c.buffer.fill(in, had+left); err != nil {
			return err
		}
		c.chunk.Take(int64(len(c.buffer.bytes) - had))
		return nil
	case in.r < in.w:
		used, flaw := c.chunk.Next(in.buf[in.r:in.w])
		in.r += used
		if flaw != nil {
			bad := flaw.OfRequest()
			return status.Coded(bad.Code, bad.Message)
		}
		return nil
	}
	return c.fill()
}

// take adds n bytes of data to the body.
func (c *chunkReader) take(n int) error {
	in := c.in
	data := in.buf[in.r : in.r+n]
	if c.buffer.hasMemory() {
		if err := c.buffer.append(data, c.most()); err != nil {
			return err
		}
	} else {
		c.end += copy(in.buf[c.end:], data)
	}
	in.r += n
	c.chunk.Take(int64(n))
	return nil
}

// fill reads more into the connection's buffer. If there is little room what was decoded moves to
// memory.
func (c *chunkReader) fill() error {
	in := c.in
	if len(in.buf)-c.end < leastRoom {
		if err := c.buffer.append(in.buf[c.start:c.end], c.most()); err != nil {
			return err
		}
		c.end = c.start
	}
	in.r, in.w = c.end, c.end
	if n, err := in.fill(); n == 0 {
		return bodyError(err)
	}
	return nil
}

// skipBody skips a body that the handler left unread, if it has arrived already. It returns false
// if the connection must end.
func (x *exchange) skipBody() bool {
	if u := x.upload; u != nil {
		return !u.isUnderWay()
	}
	in := &x.conn.in
	if x.body == bodyUnread && x.HasArrived() {
		in.r += int(x.request.Head.ContentLength)
		x.body = bodyRead
	}
	return x.body == bodyRead
}

func tooLargeBody(limit int64) error {
	return status.RequestEntityTooLarge("the request body must be at most %d bytes", limit)
}

func bodyError(err error) error {
	if isTimeout(err) {
		return status.Coded(408, "the body of the request did not arrive in time")
	}
	return bodyCut()
}

func bodyCut() error {
	return status.BadRequest("the connection ended before the body of the request was complete")
}
