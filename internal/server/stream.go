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
	byClose  // HTTP/1.0 knows no chunks: the end of the connection ends the body
	byFrames // of HTTP/2, which the sender makes
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
	server   *Server
	out      sender
	answered *bool // the exchange's
	body     message.Stream
	head     []byte // nil once it was sent, or if the sender sends it
	framing  framing
	// mayEndEarly says that a shutdown may end the stream as a complete one.
	mayEndEarly bool
	readAhead   *readAhead // nil if the body is read at the pace of the client
}

// A sender sends parts of an answer to the client. The bytes may be used again when it returns.
type sender interface {
	// sendPart sends a part, which may be empty. Nothing follows the last one.
	sendPart(p []byte, isLast bool) error
}

// SendStream implements Exchange. An answer that breaks off ends the connection.
func (x *exchange) SendStream(m *message.Response, flow Flow, e Editor, ahead *ReadAhead) (int64, error) {
	body := m.Stream()
	defer m.Close()
	length := body.Length()
	if e != nil {
		length = -1
	}
	x.answered = e == nil || x.headOnly
	s := stream{server: x.conn.server, out: x.conn, answered: &x.answered, body: body, framing: x.framingOf(length),
		mayEndEarly: flow == Events}
	s.head = x.makeHead(m, e != nil, s.framing)
	if x.headOnly {
		return 0, x.conn.sendAnswer(s.head)
	}
	if body.Length() < 0 && !x.upload.isUnderWay() {
		x.lend()
		if !x.conn.at.ServesHalf() {
			// It may go on for hours: the system tells of the end of the connection, without being asked all the time.
			defer x.conn.onClose(x.conn.client.Leave)()
		}
	}
	defer x.request.interruptible(body)()
	x.conn.sending.setStream(body, flow)
	defer x.conn.sending.setStream(nil, Whole)
	if s.framing == byClose {
		x.conn.sending.setEndsByClose()
	}
	if flow != Whole && x.conn.server.flows(x.conn) {
		body.Interrupt()
	}
	sent, err := s.carry(e, ahead)
	if err == nil || !x.answered {
		return sent, err
	}
	return sent, x.broke(err, flow == Events, s.framing)
}

// makeHead returns the head of an answer whose body is framed in that way.
func (x *exchange) makeHead(m *message.Response, isEdited bool, by framing) []byte {
	x.finishBody()
	if by == byClose {
		x.endAfter(end)
	}
	return m.StreamHead(isEdited, by == byChunks, x.connectionLine())
}

// broke ends an answer whose body is not complete.
func (x *exchange) broke(err error, hasEvents bool, by framing) error {
	interrupted := errors.Is(err, message.ErrInterrupted)
	if interrupted && hasEvents && x.conn.server.isStopping() && !errors.Is(err, errNoEvents) {
		if by == byChunks {
			return x.conn.sendPart([]byte("0\r\n\r\n"), true)
		}
		return nil
	}
	x.endAfter(end)
	if by == byClose {
		x.conn.socket.reset()
	}
	if interrupted {
		return errClientLeft
	}
	return err
}

// carry carries the answer from the backend to the client, and returns how many bytes of body went out.
func (s *stream) carry(e Editor, read *ReadAhead) (sent int64, err error) {
	if read != nil {
		s.readAhead = newReadAhead(s.out, &s.server.buffers, read.Share, s.body.Interrupt)
		defer func() { _, _ = s.readAhead.finish() }() // also after a panic
	}
	if e == nil {
		sent, err = s.copy()
	} else {
		sent, err = s.copyEdited(e)
	}
	if s.readAhead != nil {
		read.Done()
		lost, failed := s.readAhead.finish()
		if sent = max(0, sent-lost); failed != nil {
			err = failed
		}
	}
	return sent, err
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
	return s.send(head, false)
}

// send sends a part of the answer, or has it sent. The bytes may be used again.
func (s *stream) send(p []byte, isLast bool) error {
	if s.readAhead != nil {
		return s.readAhead.send(p, isLast)
	}
	return s.out.sendPart(p, isLast)
}

// copyPart sends n bytes of the body, as many as have arrived. It returns the error of reading,
// which is io.EOF behind the end, and the error of sending.
func (s *stream) copyPart() (n int, failed, sendFailed error) {
	const (
		size = len("10000\r\n") // in front of a chunk
		last = len("\r\n0\r\n\r\n")
	)
	buf := s.server.buffers.copy()
	defer s.server.buffers.putCopy(buf)
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
	if isLast := failed == io.EOF; from < to || isLast {
		sendFailed = s.send(buf[from:to], isLast)
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
