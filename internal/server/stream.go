package server

import (
	"errors"
	"io"

	"github.com/admission-gateway/gateway/internal/message"
)

// framing says how the client finds the end of a body.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose // HTTP/1.0 knows no chunks: the end of the connection ends the body
)

// framingOf returns how a body is framed whose length is -1 if it is not known.
func (x *exchange) framingOf(length int64) framing {
	switch {
	case length >= 0:
		return byLength
	case x.request.Head.Minor > 0:
		return byChunks
	}
	return byClose
}

// stream is one answer whose body is sent as it comes.
type stream struct {
	exchange *exchange
	conn     *conn
	body     message.Stream
	head     []byte // nil once it was sent
	framing  framing
	ahead    *ahead // nil if the body is read at the pace of the client
}

// SendStream implements Exchange. An answer that breaks off ends the connection.
func (x *exchange) SendStream(m *message.Response, flow Flow, e Editor, ahead *Ahead) (int64, error) {
	body := m.Stream()
	defer m.Close()
	length := body.Length()
	if e != nil {
		length = -1
	}
	x.answered = e == nil || x.headOnly
	s := stream{exchange: x, conn: x.conn, body: body, framing: x.framingOf(length)}
	s.head = s.makeHead(m, e != nil)
	if x.headOnly {
		return 0, x.conn.sendAnswer(s.head)
	}
	if body.Length() < 0 && !x.upload.isUnderWay() {
		// Only the end of the connection shows in time that the client has stopped reading.
		x.lend()
		stop := x.OnClose(body.Interrupt)
		defer stop()
	}
	x.conn.sending.setStream(body, flow)
	defer x.conn.sending.setStream(nil, Whole)
	if flow != Whole && x.conn.server.flows(x.conn) {
		body.Interrupt()
	}
	var sent int64
	var err error
	if ahead != nil {
		s.ahead = newAhead(x.conn, ahead.Share, body.Interrupt)
		defer func() { _, _ = s.ahead.finish() }() // also after a panic
	}
	if e == nil {
		sent, err = s.copy()
	} else {
		sent, err = s.copyEdited(e)
	}
	if s.ahead != nil {
		ahead.Done()
		lost, failed := s.ahead.finish()
		if sent = max(0, sent-lost); failed != nil {
			err = failed
		}
	}
	if err == nil || !x.answered {
		return sent, err
	}
	return sent, s.broke(err, flow == Events)
}

// makeHead returns the head of the answer.
func (s *stream) makeHead(m *message.Response, isEdited bool) []byte {
	s.exchange.finishBody()
	if s.framing == byClose {
		s.exchange.endAfter(end)
	}
	return m.StreamHead(isEdited, s.framing == byChunks, s.exchange.connectionLine())
}

// broke ends an answer whose body is not complete.
func (s *stream) broke(err error, hasEvents bool) error {
	interrupted := errors.Is(err, message.ErrInterrupted)
	if interrupted && hasEvents && s.conn.server.isStopping() {
		if s.framing == byChunks {
			return s.conn.sendPart([]byte("0\r\n\r\n"))
		}
		return nil
	}
	s.exchange.endAfter(end)
	if s.framing == byClose {
		s.conn.socket.reset()
	}
	if interrupted {
		return errClientLeft
	}
	return err
}

// copy sends head and body. Each write carries what has arrived by then, as one chunk if the body
// is chunked.
func (s *stream) copy() (sent int64, err error) {
	if len(s.head) > copyBuffer/2 || !s.body.Ready() {
		if err := s.sendHead(); err != nil {
			return 0, err
		}
	}
	for err == nil {
		// A body of known length comes at once and is read straight to its place; any other may
		// pause for hours, without memory.
		if s.body.Length() < 0 {
			if err = s.body.Wait(); err != nil && err != io.EOF {
				return sent, err
			}
		}
		n, failed, sendFailed := s.copyPart()
		if err = failed; sendFailed != nil {
			return sent, sendFailed
		}
		sent += int64(n)
	}
	if err == io.EOF {
		err = nil
	}
	return sent, err
}

// sendHead sends the head before the body.
func (s *stream) sendHead() error {
	head := s.head
	s.head = nil
	return s.send(head)
}

// send sends a part of the answer, or has it sent. The bytes may be used again.
func (s *stream) send(p []byte) error {
	if s.ahead != nil {
		return s.ahead.send(p)
	}
	return s.conn.sendPart(p)
}

// copyPart sends n bytes of the body, as many as have arrived. It returns the error of reading,
// which is io.EOF behind the end, and the error of sending.
func (s *stream) copyPart() (n int, failed, sendFailed error) {
	const (
		size = len("10000\r\n") // in front of a chunk
		last = len("\r\n0\r\n\r\n")
	)
	buf := s.conn.server.buffers.copy()
	defer s.conn.server.buffers.putCopy(buf)
	start, end := len(s.head), len(buf)-last
	if s.framing == byChunks {
		start += size
	}
	n, failed = s.readArrived(buf[start:end])
	from, to := start, start+n
	if s.framing == byChunks {
		if n > 0 {
			from = putChunkSize(buf[:start], n)
			to += copy(buf[to:], "\r\n")
		}
		if failed == io.EOF {
			to += copy(buf[to:], "0\r\n\r\n")
		}
	}
	from -= copy(buf[from-len(s.head):from], s.head)
	s.head = nil
	if from < to {
		sendFailed = s.send(buf[from:to])
	}
	return n, failed, sendFailed
}

// readArrived waits for bytes of the body, and reads all that have arrived and fit.
func (s *stream) readArrived(p []byte) (int, error) {
	m, err := s.body.Read(p)
	n := m
	for ; err == nil && m > 0 && n < len(p); n += m {
		m, err = s.body.ReadReady(p[n:])
	}
	return n, err
}

// putChunkSize writes the size line of a chunk of n bytes to the end of b and returns its offset.
func putChunkSize(b []byte, n int) int {
	i := len(b) - 2
	b[i], b[i+1] = '\r', '\n'
	for ; n > 0; n >>= 4 {
		i--
		b[i] = "0123456789abcdef"[n&15]
	}
	return i
}
