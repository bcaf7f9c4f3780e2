package upstream

import (
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// uploadPart is how much of an upload is read and sent at a time.
const uploadPart = 32 << 10

// uploadRoom is what is left free of a part before the data, for the size of a chunk.
const uploadRoom = len("8000\r\n")

// An uploadSender sends an upload to the backend. It goes on beside the answer, which a backend may begin
// before it has everything.
type uploadSender struct {
	transport *transport
	to        uploadSink
	request   *Request
	upload    message.Upload // of the request
	done      chan struct{}

	mu         sync.Mutex
	isAnswered bool  // the head of the answer has come
	isEnding   bool  // the exchange is over: the client is not the reason
	failed     error // of the client; nil if it sends, or has sent everything
	isComplete bool
}

// begin starts to send the upload of a request whose head was sent.
func (t *transport) begin(to uploadSink, req *Request) *uploadSender {
	s := &uploadSender{transport: t, to: to, request: req, upload: req.Upload, done: make(chan struct{})}
	go s.run()
	return s
}

// run sends the upload to its end. If the client fails, the backend must not take what came for the
// whole, so the connection is broken, and no answer is awaited. If the backend takes no more, its
// answer may still say why.
func (s *uploadSender) run() {
	defer close(s.done)
	failed, isComplete := s.copy()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isEnding {
		failed = nil
	}
	s.isComplete, s.failed = isComplete, failed
	switch {
	case failed != nil:
		s.to.breakOff()
	case !s.isAnswered:
		// Only now the backend has what it takes to answer.
		patience := s.request.answerTimeout(&s.transport.config.Timeouts)
		if by := s.request.Deadline; !by.IsZero() {
			patience = min(patience, time.Until(by))
		}
		if s.to.boundAnswer(patience); s.request.isAbandoned() {
			s.to.breakOff()
		}
	}
}

// copy sends the upload, and returns the error of the client, if it fails.
func (s *uploadSender) copy() (failed error, isComplete bool) {
	part, ok := s.transport.parts.Get().(*[uploadPart]byte)
	if !ok {
		part = new([uploadPart]byte)
	}
	defer s.transport.parts.Put(part)
	isChunked, left := s.upload.Length() < 0, s.upload.Length()
	for isChunked || left > 0 {
		n, err := s.upload.Read(part[uploadRoom : len(part)-len("\r\n0\r\n\r\n")])
		left -= int64(n)
		isLast := err == io.EOF && (isChunked || left == 0) || err == nil && !isChunked && left == 0
		if refused := s.to.sendPart(part, n, isLast, s.request); refused != nil {
			return nil, false
		}
		switch {
		case err == io.EOF && (isChunked || left == 0):
			return nil, true
		case err == io.EOF:
			return io.ErrUnexpectedEOF, false
		case err != nil:
			return err, false
		}
	}
	return nil, true
}

// sendPart implements outlet.
func (cn *conn) sendPart(part *[uploadPart]byte, n int, isLast bool, req *Request) error {
	data := part[uploadRoom : uploadRoom+n]
	if req.Upload.Length() < 0 {
		data = framed(part[:], uploadRoom, n, isLast)
	}
	if len(data) == 0 {
		return nil
	}
	_ = cn.Conn.SetWriteDeadline(time.Now().Add(req.bodyTimeout(&cn.transport.config.Timeouts)))
	_, err := cn.Conn.Write(data)
	return err
}

// boundAnswer implements outlet.
func (cn *conn) boundAnswer(d time.Duration) { _ = cn.Conn.SetReadDeadline(time.Now().Add(d)) }

// answered implements outlet.
func (cn *conn) answered() {
	cn.readBy = time.Time{}
	_ = cn.Conn.SetReadDeadline(time.Time{})
}

// breakOff implements outlet.
func (cn *conn) breakOff() { _ = cn.Conn.SetReadDeadline(time.Unix(1, 0)) }

// stopSending implements outlet.
func (cn *conn) stopSending() { _ = cn.Conn.SetWriteDeadline(time.Unix(1, 0)) }

// framed makes a chunk of the n bytes from room on, and appends the end of the body if they are the last.
func framed(part []byte, room, n int, isLast bool) []byte {
	from, to := room, room+n
	if n > 0 {
		from -= 2
		copy(part[from:], "\r\n")
		size := strconv.AppendInt(make([]byte, 0, 8), int64(n), 16)
		from -= len(size)
		copy(part[from:], size)
		to += copy(part[to:], "\r\n")
	}
	if isLast {
		to += copy(part[to:], "0\r\n\r\n")
	}
	return part[from:to]
}

// answered notes that the head of the answer has come: what bounds the wait for it no longer holds.
func (s *uploadSender) answered() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAnswered = true
	s.to.answered()
}

// uploadGrace is how long an upload may still take once its answer is complete. A client that has sent
// everything by then keeps its connection, with the requests that it may have sent behind the upload.
const uploadGrace = 250 * time.Millisecond

// finish gives an upload whose answer is complete the time to end, stops it otherwise, and reports
// whether all of it was sent. Backends answer before they have read a body that they do not need.
func (s *uploadSender) finish() (isComplete bool) {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return s.end()
	default:
	}
	grace := time.NewTimer(uploadGrace)
	defer grace.Stop()
	select {
	case <-s.done:
	case <-grace.C:
	}
	return s.end()
}

// end stops the upload, and reports whether all of it was sent.
func (s *uploadSender) end() (isComplete bool) {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
	default:
		s.mu.Lock()
		s.isEnding = true
		s.mu.Unlock()
		s.upload.Interrupt()
		s.to.stopSending()
		<-s.done
	}
	return s.isComplete
}

// orFailed returns the client's failure, if it is the reason for the failure of the exchange.
func (s *uploadSender) orFailed(err error) error {
	if s == nil || s.failed == nil {
		return err
	}
	return newError(ClientFailed, true, s.failed)
}
