package server

import (
	"time"

	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/status"
)

// A body is the body of a request, as far as it was read.
type body struct {
	state  bodyState
	buffer bodyBuffer
	upload *Upload // nil if it is read whole
	size   int     // of a body that was read whole
}

type bodyState uint8

const (
	bodyUnread bodyState = iota
	bodyRead             // to its end; or there is none
	bodyBroken           // it cannot be read to its end
)

// ReadBody reads the body whole, if it is at most so long. The bytes are valid until the handler
// returns. Memory is taken as bytes arrive, never for bytes that a client merely announces. The
// error is a *status.Error; after one the connection ends with the answer.
func (r *Request) ReadBody(limit int64) ([]byte, error) {
	if r.body.state == bodyRead {
		return nil, nil
	}
	if err := r.receiveBody(limit); err != nil {
		r.body.state = bodyBroken
		return nil, err
	}
	r.body.state, r.body.size = bodyRead, len(r.body.buffer.bytes)
	return r.body.buffer.bytes, nil
}

// BodyBytes returns how much of the body was read, without its framing.
func (r *Request) BodyBytes() int64 {
	if u := r.body.upload; u != nil {
		return u.taken.Load()
	}
	return int64(r.body.size)
}

// ReplaceBody keeps other bytes in the place of the body that was read, up to the same moment.
func (r *Request) ReplaceBody(bytes []byte) ([]byte, error) {
	b := &r.body.buffer
	b.release()
	b.open(r.conn.server.o.Memory, &r.Memory)
	err := b.append(bytes, len(bytes))
	return b.bytes, err
}

// ReleaseBody forgets the body that was read.
func (r *Request) ReleaseBody() { r.body.buffer.release() }

func (r *Request) receiveBody(limit int64) error {
	in, length := &r.conn.in, r.Head.ContentLength
	if length > limit {
		return tooLargeBody(limit)
	}
	if !r.Head.Chunked && int64(in.w-in.r) >= length {
		r.body.buffer.bytes = in.buf[in.r : in.r+int(length)]
		in.r += int(length)
		return nil
	}
	if err := r.expect(); err != nil {
		return err
	}
	r.conn.socket.setReadDeadline(time.Now().Add(r.conn.server.o.BodyTimeout))
	r.body.buffer.open(r.conn.server.o.Memory, &r.Memory)
	if r.Head.Chunked {
		c := chunkReader{in: in, buffer: &r.body.buffer, start: r.headEnd, limit: limit}
		return c.read()
	}
	return r.body.buffer.readLength(in, int(length))
}

// expect asks the client for the body, if it waits for that.
func (r *Request) expect() error {
	if r.Head.Expect {
		if _, err := r.conn.send([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
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

// fill reads straight from the socket into the body, which may become so long.
func (b *bodyBuffer) fill(in *input, most int) error {
	room, err := b.room(most)
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
// and then into memory. Trailers are read and dropped: nobody has looked at a header that comes
// after the body.
type chunkReader struct {
	in     *input
	buffer *bodyBuffer
	start  int // of the body in the connection's buffer
	end    int // of the data that was decoded in place
	limit  int64
	chunk  http1.Chunked
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
func (r *Request) skipBody() bool {
	if u := r.body.upload; u != nil {
		return !u.isUnderWay()
	}
	in := &r.conn.in
	if r.body.state == bodyUnread && !r.Head.Chunked && int64(in.w-in.r) >= r.Head.ContentLength {
		in.r += int(r.Head.ContentLength)
		r.body.state = bodyRead
	}
	return r.body.state == bodyRead
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
