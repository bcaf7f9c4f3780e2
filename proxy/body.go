package proxy

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// bodyState says how far the body of the current request was read.
type bodyState uint8

const (
	bodyUnread bodyState = iota
	bodyNone             // the request has none, or it was read to its end
	bodyBroken           // it cannot be read to its end
)

// bodyBudget bounds the memory of all request bodies in flight, and keeps that
// memory for the next ones. What fits the buffer that each connection has
// anyway is not counted.
type bodyBudget struct {
	limit int64
	used  atomic.Int64
	drops ratelimit.Drops // requests that found it used up
	// pools hold powers of two from 32 KiB to 4 MiB; larger memory is left to
	// the garbage collector.
	pools [largestSpill - smallestSpill + 1]sync.Pool
}

const (
	smallestSpill = 15
	largestSpill  = 22
)

// newBodyBudget returns a budget of that many bytes.
func newBodyBudget(limit int64) *bodyBudget { return &bodyBudget{limit: limit} }

// inUse is the number of bytes that are taken.
func (b *bodyBudget) inUse() int64 { return b.used.Load() }

// take returns 1<<class bytes, nil where the budget does not allow them.
func (b *bodyBudget) take(class int) []byte {
	n := int64(1) << class
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return nil
	}
	if class <= largestSpill {
		if p, ok := b.pools[class-smallestSpill].Get().(*[]byte); ok {
			return *p
		}
	}
	return make([]byte, 1<<class)
}

func (b *bodyBudget) give(memory []byte, class int) {
	b.used.Add(-int64(1) << class)
	if class <= largestSpill {
		b.pools[class-smallestSpill].Put(&memory)
	}
}

// reserve takes memory that is not kept; false where the budget does not allow it.
func (b *bodyBudget) reserve(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// free gives back what was reserved.
func (b *bodyBudget) free(n int64) { b.used.Add(-n) }

// replaceBody keeps another body in the place of the one that was read, up to the same moment.
func (c *conn) replaceBody(body []byte, budget *bodyBudget) ([]byte, error) {
	c.spill.release()
	c.spill.budget = budget
	err := c.spill.append(body, len(body))
	return c.spill.body, err
}

func errNoBudget() error {
	return status.ServiceUnavailable("the gateway holds as many request bodies as it may", 1)
}

// readBody reads the body of the current request whole. The bytes are valid
// until the handler returns. Memory is taken as bytes arrive, never for what a
// client merely announces. The error is a *status.Error; after one the
// connection ends with the answer.
func (c *conn) readBody(limit int64, budget *bodyBudget) ([]byte, error) {
	if c.body == bodyNone {
		return nil, nil
	}
	if err := c.receiveBody(limit, budget); err != nil {
		c.body = bodyBroken
		return nil, err
	}
	c.body = bodyNone
	return c.spill.body, nil
}

func (c *conn) receiveBody(limit int64, budget *bodyBudget) error {
	length := c.head.ContentLength
	if length > limit {
		return tooLargeBody(limit)
	}
	if !c.head.Chunked && int64(c.w-c.r) >= length {
		c.spill.body = c.buf[c.r : c.r+int(length)]
		c.r += int(length)
		return nil
	}
	if c.head.Expect {
		if _, err := c.send([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return bodyCut()
		}
	}
	c.setReadDeadline(time.Now().Add(c.server.o.BodyTimeout))
	c.spill.budget = budget
	if c.head.Chunked {
		return c.readChunked(limit)
	}
	return c.readLength(int(length))
}

// readLength reads a body of known length: into the buffer of the connection,
// and where that is too small into memory of the budget.
func (c *conn) readLength(length int) error {
	end := min(c.r+length, len(c.buf))
	for c.w < end {
		if err := c.fill(); err != nil {
			return err
		}
	}
	body := c.buf[c.r:end]
	c.r = end
	if len(body) == length {
		c.spill.body = body
		return nil
	}
	if err := c.spill.append(body, length); err != nil {
		return err
	}
	for len(c.spill.body) < length {
		if err := c.fillSpill(length); err != nil {
			return err
		}
	}
	return nil
}

// readChunked decodes a chunked body, in place as long as the buffer of the
// connection has room. Its trailers are read and dropped: a header that comes
// after the body was never judged.
func (c *conn) readChunked(limit int64) error {
	const least = 512 // room that makes a read worth while
	if len(c.buf)-c.headEnd < least {
		// The head fills the buffer, and is in use for as long as the request.
		c.buf = append(make([]byte, 0, len(c.buf)+readBuffer), c.buf...)[:len(c.buf)+readBuffer]
	}
	most := int(min(limit, 1<<40))
	end := c.headEnd // of the data that was decoded in place
	var chunk wire.Chunked
	for {
		left := chunk.Left()
		if int64(len(c.spill.body)+end-c.headEnd)+left > limit {
			return tooLargeBody(limit)
		}
		switch n := min(int(left), c.w-c.r); {
		case n > 0 && !c.spill.inUse():
			end += copy(c.buf[end:], c.buf[c.r:c.r+n])
			c.r += n
			chunk.Take(int64(n))
		case n > 0:
			if err := c.spill.append(c.buf[c.r:c.r+n], most); err != nil {
				return err
			}
			c.r += n
			chunk.Take(int64(n))
		case left > 0 && c.spill.inUse():
			had := len(c.spill.body)
			if err := c.fillSpill(had + int(left)); err != nil {
				return err
			}
			chunk.Take(int64(len(c.spill.body) - had))
		case c.r < c.w:
			used, bad := chunk.Next(c.buf[c.r:c.w])
			c.r += used
			if bad != nil {
				return status.Coded(bad.Code, bad.Message)
			}
			if chunk.Done() {
				if !c.spill.inUse() {
					c.spill.body = c.buf[c.headEnd:end]
				}
				return nil
			}
		default:
			if len(c.buf)-end < least {
				if err := c.spill.append(c.buf[c.headEnd:end], most); err != nil {
					return err
				}
				end = c.headEnd
			}
			c.r, c.w = end, end
			if err := c.fill(); err != nil {
				return err
			}
		}
	}
}

// fill reads into the buffer of the connection, which has room.
func (c *conn) fill() error {
	n, err := c.Conn.Read(c.buf[c.w:])
	c.w += n
	if n == 0 {
		return bodyError(err)
	}
	return nil
}

// fillSpill reads straight into the body, which may become most bytes long.
func (c *conn) fillSpill(most int) error {
	room, err := c.spill.room(most)
	if err != nil {
		return err
	}
	n, rerr := c.Conn.Read(room)
	c.spill.body = c.spill.body[:len(c.spill.body)+n]
	if n == 0 {
		return bodyError(rerr)
	}
	return nil
}

// skipBody makes the connection ready for the next request where the handler
// left a body unread that has arrived already. It returns false where the
// connection must end.
func (c *conn) skipBody() bool {
	if c.body == bodyNone {
		return true
	}
	if c.body == bodyUnread && !c.head.Chunked && int64(c.w-c.r) >= c.head.ContentLength {
		c.r += int(c.head.ContentLength)
		c.body = bodyNone
		return true
	}
	return false
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

// spill holds the body of a request: a part of the connection's buffer, or
// memory of the budget that grows as bytes arrive.
type spill struct {
	body   []byte
	memory []byte // of the budget; nil where none was taken
	class  int
	budget *bodyBudget
}

func (s *spill) inUse() bool { return s.memory != nil }

// append adds bytes to the body, which may become most bytes long.
func (s *spill) append(b []byte, most int) error {
	for len(b) > 0 {
		room, err := s.room(most)
		if err != nil {
			return err
		}
		n := copy(room, b)
		s.body = s.body[:len(s.body)+n]
		b = b[n:]
	}
	return nil
}

// room returns free memory behind the body, not beyond most bytes of body;
// where there is none the memory doubles.
func (s *spill) room(most int) ([]byte, error) {
	n := len(s.body)
	if n == len(s.memory) {
		class := max(bits.Len(uint(min(most, max(2*n, 64<<10))-1)), smallestSpill)
		memory := s.budget.take(class)
		if memory == nil {
			return nil, status.ServiceUnavailable("the gateway holds as many request bodies as it may", s.budget.drops.Add(time.Now()))
		}
		copy(memory, s.body)
		if s.memory != nil {
			s.budget.give(s.memory, s.class)
		}
		s.memory, s.class = memory, class
		s.body = memory[:n]
	}
	return s.memory[n:min(len(s.memory), most)], nil
}

// release forgets the body.
func (s *spill) release() {
	if s.memory != nil {
		s.budget.give(s.memory, s.class)
	}
	*s = spill{}
}
