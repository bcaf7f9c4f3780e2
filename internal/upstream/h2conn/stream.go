package h2conn

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
)

// Stream is one request and its answer. One goroutine may send, and one may receive, at a time. Interrupt and
// StopSending may be called by any other, until the stream is closed. Its connection's lock guards it.
type Stream struct {
	conn   *Conn
	id     uint32
	headAt uint64 // where its head is among all bytes that were written

	sender streamWaiter
	room   h2.SendWindow
	local  halfState

	receiver    streamWaiter
	window      h2.ReceiveWindow
	isDrained   bool // the reader has taken all that had come, since the window grew last
	remote      halfState
	head        []byte
	headBy      time.Time
	interims    int
	data        dataChunks
	left        int64 // of the body; -1 if its length is not known
	trailers    []message.Header
	interrupted bool

	err error // how it failed
}

// halfState is the state of one direction of a stream.
type halfState uint8

const (
	before   halfState = iota // no head has come
	underWay                  // the body is
	over
	stopped // by the one who sends, before the end
)

// streamWaiter is a goroutine that may wait for a change of a stream.
type streamWaiter struct {
	changed sync.Cond
	timer   *time.Timer
}

func newStream(c *Conn) *Stream {
	s := &Stream{conn: c}
	s.sender.changed.L, s.receiver.changed.L = &c.mu, &c.mu
	return s
}

// begin makes the stream a new one.
func (s *Stream) begin(id uint32, window int64) {
	s.id, s.headAt = id, 0
	s.room, s.local = h2.NewSendWindow(window), underWay
	s.window, s.isDrained, s.remote = h2.NewReceiveWindow(streamWindow), false, before
	s.head, s.headBy, s.interims, s.left, s.trailers, s.interrupted, s.err = s.head[:0], time.Time{}, 0, -1, nil, false,
		nil
}

// wake has the sleeper look again.
func (w *streamWaiter) wake() { w.changed.Signal() }

// sleep waits until something changes, at most until then; the zero time is no bound. The lock is given back meanwhile.
func (w *streamWaiter) sleep(until time.Time) error {
	if until.IsZero() {
		w.changed.Wait()
		return nil
	}
	left := time.Until(until)
	switch {
	case left <= 0:
		return os.ErrDeadlineExceeded
	case w.timer == nil:
		w.timer = time.AfterFunc(left, func() {
			w.changed.L.Lock()
			defer w.changed.L.Unlock()
			w.wake()
		})
	default:
		w.timer.Reset(left)
	}
	w.changed.Wait()
	w.timer.Stop()
	return nil
}

// fail ends the stream, if it has not ended.
func (s *Stream) fail(kind Kind, cause error) {
	if s.err == nil && !(s.remote == over && kind == Broken) {
		s.err = &Error{Kind: kind, Cause: cause}
	}
	if s.local == underWay {
		s.local = stopped
	}
	s.sender.wake()
	s.receiver.wake()
}

// Send sends a part of the body, in as many frames as it takes. It waits for room, each time as long as patience. A
// last part ends the request.
func (s *Stream) Send(p []byte, isLast bool, patience time.Duration) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for first := true; len(p) > 0 || isLast && first; first = false {
		n, err := s.waitForRoom(len(p), patience)
		if err != nil {
			return err
		}
		isEnd := isLast && n == len(p)
		_ = c.framer.WriteData(s.id, isEnd, p[:n])
		c.guard.Earn(2) // the server gives room back in both windows
		if p = p[n:]; isEnd {
			s.local = over
		}
	}
	c.flush()
	return nil
}

// waitForRoom takes up to n bytes of both windows, at least one if n is not 0.
func (s *Stream) waitForRoom(n int, patience time.Duration) (int, error) {
	c := s.conn
	var until time.Time
	for {
		if s.local != underWay {
			return 0, s.unsent()
		}
		if len(c.out.pending) < maxPending {
			m := s.room.Take(min(n, c.server.frame))
			k := c.window.Take(m)
			s.room.Give(m - k)
			if k > 0 || n == 0 {
				return k, nil
			}
		}
		if !c.out.isWriting && len(c.out.pending) > 0 {
			c.flush()
			continue
		}
		if s.remote == over {
			return 0, ErrStopped // the server has said all it has to say
		}
		if until.IsZero() {
			until = time.Now().Add(patience)
		}
		if err := s.sender.sleep(until); err != nil {
			return 0, err
		}
	}
}

// unsent is why a body is not sent to its end.
func (s *Stream) unsent() error {
	if s.err != nil {
		return s.err
	}
	return ErrStopped
}

// SendTrailers ends the request by a block of trailers.
func (s *Stream) SendTrailers(fields []byte) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.local != underWay {
		return s.unsent()
	}
	c.writeFields(s.id, fields, true)
	s.local = over
	c.flush()
	return nil
}

// Flush sends a head that waited for a body, which does not come now.
func (s *Stream) Flush() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.conn.flush()
}

// StopSending makes a Send in progress and those to come return ErrStopped.
func (s *Stream) StopSending() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.local == underWay {
		s.local = stopped
		s.sender.wake()
	}
}

// BoundHead says until when the head of the answer is waited for; the zero time is no bound.
func (s *Stream) BoundHead(by time.Time) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.headBy = by
	s.receiver.wake()
}

// Head waits for the head of the answer, as text of HTTP/1.1, which is valid until Expect is called, or the stream is
// closed.
func (s *Stream) Head() ([]byte, error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	for s.remote == before {
		switch {
		case s.err != nil:
			return nil, s.err
		case s.interrupted:
			return nil, message.ErrInterrupted
		}
		if err := s.receiver.sleep(s.headBy); err != nil {
			return nil, err
		}
	}
	return s.head, nil
}

// Expect says that the head is not used any more, and how long the body is, -1 if that is not known. The data are
// compared with that.
func (s *Stream) Expect(length int64) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.left = length
	// A stream may go on for hours: others use the memory of its head.
	if s.head != nil && len(c.heads) < maxSpare {
		c.heads = append(c.heads, s.head)
	}
	s.head = nil
}

// Read reads bytes of the body; io.EOF comes after the last byte of a complete body alone. If wait is set, it waits for
// some until then; else it takes only what has arrived, and returns 0 and no error if that is nothing.
func (s *Stream) Read(p []byte, wait bool, until time.Time) (int, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait {
		if err := s.waitForData(until); err != nil {
			return 0, err
		}
	}
	switch {
	case s.data.length > 0:
		return s.take(p)
	case s.err != nil:
		return 0, s.err
	case s.remote == over && s.left > 0:
		return 0, malformed("the answer has fewer bytes than its 'content-length' says")
	case s.remote == over:
		return 0, io.EOF
	}
	return 0, nil
}

// take moves data to p, and lets the server send more in their place.
func (s *Stream) take(p []byte) (int, error) {
	c := s.conn
	if s.left >= 0 && int64(s.data.length) > s.left {
		return 0, malformed("the answer has more bytes than its head says")
	}
	n := s.data.take(p, s.conn.config.Memory)
	if s.left >= 0 {
		s.left -= int64(n)
	}
	s.consume(n)
	c.flush()
	return n, nil
}

// consume notes that n bytes of the window are free again. If the reader has taken all that came, it waits for the
// network, and the window grows, so that more can be on its way. A reader that is slower than the server makes no
// window larger.
func (s *Stream) consume(n int) {
	s.isDrained = s.isDrained || s.data.length == 0
	update := s.window.Consume(n)
	if update == 0 || s.remote != underWay || s.err != nil || s.conn.err != nil {
		return
	}
	if s.isDrained {
		s.isDrained = false
		update += s.window.Grow(min(2*s.window.Size(), maxStreamWindow))
	}
	_ = s.conn.framer.WriteWindowUpdate(s.id, uint32(update))
}

// Wait waits until a Read would find something, if only the end.
func (s *Stream) Wait(until time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.waitForData(until)
}

func (s *Stream) waitForData(until time.Time) error {
	for s.data.length == 0 && s.remote != over && s.err == nil {
		if s.interrupted {
			return message.ErrInterrupted
		}
		if err := s.receiver.sleep(until); err != nil {
			return err
		}
	}
	return nil
}

// Arrived returns how many bytes a Read would find. The end counts for one.
func (s *Stream) Arrived() int {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.remote == over || s.err != nil {
		return s.data.length + 1
	}
	return s.data.length
}

// IsOver reports whether a Read would find the end of a complete body.
func (s *Stream) IsOver() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.data.length == 0 && s.remote == over && s.left <= 0
}

// Trailers returns the fields behind the body, once Read has returned io.EOF.
func (s *Stream) Trailers() []message.Header {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.trailers
}

// Interrupt makes the one who receives return, once there is nothing that has arrived.
func (s *Stream) Interrupt() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.interrupted = true
	s.receiver.wake()
}

// Close ends the use of the stream. It must not be used after that. A stream that has not ended on both sides is reset.
func (s *Stream) Close() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if isOver := s.local == over && s.remote == over; !isOver && s.err == nil && c.err == nil {
		code := http2.ErrCodeCancel
		if s.remote == over {
			code = http2.ErrCodeNo // the answer is whole: the rest of the request is of no use (RFC 9113, 8.1)
		}
		_ = c.framer.WriteRSTStream(s.id, code)
		c.guard.Earn(streamWindow / 1024) // what the server had sent by then is no fault
	}
	s.data.clear(s.conn.config.Memory)
	c.streams.remove(s)
	c.flush()
}
