package server

import (
	"errors"
	"io"
	"slices"

	"github.com/admission-gateway/gateway/internal/message"
)

// copyEdited is copy for a body that is edited on its way. The head of a stream of events leaves at
// once, and each event leaves when its last byte has come. Any other head waits for the first part
// of the body, so that a Status can still say what is wrong with that.
func (s *stream) copyEdited(e Editor) (sent int64, err error) {
	if e.HasEvents() {
		*s.answered = true
		if err := s.sendHead(); err != nil {
			return 0, err
		}
	}
	for err == nil {
		if !e.IsHolding() {
			e.Rest()
		}
		// No buffer is held while nothing comes.
		if err = s.body.Wait(); err != nil && err != io.EOF {
			break
		}
		var n int
		n, err = s.copyEditedPart(e)
		sent += int64(n)
	}
	switch {
	case err == io.EOF:
		err = nil
	case s.mayEndEarly && errors.Is(err, message.ErrInterrupted) && s.server.isStopping():
		return s.endEarly(e, sent, err)
	}
	return sent, err
}

// endEarly ends a stream of events that a shutdown has interrupted: the client has whole events alone. A stream that is
// encoded has a mark of its end too. An edited body without events would be taken for whole, and stays interrupted.
func (s *stream) endEarly(e Editor, sent int64, interrupted error) (int64, error) {
	if !e.HasEvents() {
		return sent, errors.Join(errNoEvents, interrupted)
	}
	out := s.server.buffers.copy()
	defer s.server.buffers.putCopy(out)
	p := editedChunk{memory: out[:0]}
	p.begin(s)
	if encoder, is := e.(interface {
		CloseEarly(dst []byte) ([]byte, error)
	}); is {
		var err error
		if p.bytes, err = encoder.CloseEarly(p.bytes); err != nil {
			return sent, err
		}
	}
	err := p.send(s, true)
	return sent + int64(p.sent), err
}

// errNoEvents is the error of an edited body that was interrupted and cannot end as a complete one.
var errNoEvents = errors.New("the editor holds back no part of an event")

// copyEditedPart edits and sends what has arrived of the body. The error is io.EOF behind its end.
// If the first part of an answer cannot be edited nothing is sent.
func (s *stream) copyEditedPart(e Editor) (sent int, err error) {
	buffers := &s.server.buffers
	in, out := buffers.copy(), buffers.copy()
	defer buffers.putCopy(in)
	defer buffers.putCopy(out)
	n, failed := s.readArrived(in[:])
	p := editedChunk{memory: out[:0]}
	p.begin(s)
	for src := in[:n]; len(src) > 0 && err == nil; {
		var used int
		p.bytes, used, err = e.Append(p.bytes, src, copyBuffer)
		if src = src[used:]; len(src) > 0 && err == nil {
			err = p.send(s, false)
		}
	}
	isLast := failed == io.EOF
	if err == nil && isLast {
		p.bytes, err = e.Close(p.bytes)
	}
	switch {
	case errors.Is(err, errClientLeft):
	case err != nil && !*s.answered:
		return 0, e.Failed(err)
	case err != nil:
		// What came before is good; a client that reads events has use for it.
		err = errors.Join(e.Failed(err), p.send(s, false))
	case failed == nil || isLast:
		if err = p.send(s, isLast); err == nil {
			err = failed
		}
	default:
		err = errors.Join(failed, p.send(s, false))
	}
	return p.sent, err
}

// An editedChunk is sent at once: the head, if it has not left yet, and a chunk of the edited body.
type editedChunk struct {
	memory []byte // for bytes, if it suffices
	bytes  []byte // room for what stands before the chunk, and its data
	start  int    // of the data
	sent   int    // data so far
}

// begin makes room for head and size line.
func (p *editedChunk) begin(s *stream) {
	p.start = len(s.head)
	if s.framing == byChunks {
		p.start += len("1234567890\r\n")
	}
	p.bytes = slices.Grow(p.memory, p.start)[:p.start]
}

// send sends what there is, and the end of the body if it is the last part.
func (p *editedChunk) send(s *stream, isLast bool) error {
	n, from := len(p.bytes)-p.start, p.start
	if s.framing == byChunks {
		if n > 0 {
			from = putChunkSize(p.bytes[:p.start], n)
			p.bytes = append(p.bytes, "\r\n"...)
		}
		if isLast {
			p.bytes = append(p.bytes, "0\r\n\r\n"...)
		}
	}
	if n == 0 && !isLast {
		return nil // the head waits too: what it announces may still turn out to be wrong
	}
	from -= copy(p.bytes[from-len(s.head):from], s.head)
	s.head = nil
	*s.answered = true
	if from < len(p.bytes) || isLast {
		if err := s.send(p.bytes[from:], isLast); err != nil {
			return err
		}
	}
	p.sent += n
	p.begin(s)
	return nil
}
