package responses

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Why bodies are not looked at.
const (
	tooLarge   = "the body is larger than limits.bodyBytes"
	noMemory   = "there is no memory to look at the body"
	busy       = "too many requests that take much work are waiting already"
	encoded    = "the body is encoded in a way that the gateway does not know"
	partial    = "the body is a part of another one"
	incomplete = "the body did not come to its end"
	endless    = "the body is a stream of events"
)

// patience is how long a large body waits for its turn. The connection's next request waits as long.
const patience = 100 * time.Millisecond

// A seen keeps what was seen of an answer.
type seen struct {
	code  int
	found []contract.Departure
	// content is declared for the body; nil if the body is not looked at.
	content *contract.Content
	// unread says why the body cannot be looked at; "" if it can.
	unread string

	encoding   []byte
	text       []byte
	isComplete bool
	stream     *teeStream // by which the body comes; nil if it is there, or is not kept
}

// leave keeps no more of the body.
func (s *seen) leave(why string) {
	s.stop()
	s.unread, s.text = why, nil
}

// stop ignores the rest of the body.
func (s *seen) stop() {
	if s.stream != nil {
		s.stream.seen, s.stream = nil, nil
	}
}

// keep keeps a body, or takes what comes of it.
func (s *seen) keep(w *Watch, answer *message.Response) {
	if value := answer.Header("Content-Encoding"); len(value) > 0 && !bytes.EqualFold(value, []byte("identity")) {
		s.encoding = bytes.Clone(value)
	}
	switch {
	case answer.Header("Content-Range") != nil:
		s.leave(partial)
	case s.encoding != nil && !compress.IsReadable(s.encoding):
		s.leave(encoded)
	case answer.IsStream() && answer.Stream().Length() > w.limits.Body:
		s.leave(tooLarge)
	case answer.IsStream():
		s.stream = &teeStream{Stream: answer.Stream(), watch: w, seen: s}
		answer.SetStream(s.stream)
	default:
		s.take(w, answer.Body())
		s.isComplete = true
	}
}

// take takes the next bytes of the body.
func (s *seen) take(w *Watch, part []byte) {
	size := len(s.text) + len(part)
	if int64(size) > w.limits.Body {
		s.leave(tooLarge)
		return
	}
	if size > cap(s.text) {
		room := max(size, min(2*cap(s.text), int(w.limits.Body)))
		if !w.grow(room - cap(s.text)) {
			s.leave(noMemory)
			return
		}
		s.text = append(make([]byte, 0, room), s.text...)
	}
	s.text = append(s.text, part...)
}

// grow asks for memory. Nothing that others need to be served at all is taken for this.
func (w *Watch) grow(bytes int) bool {
	b := w.observer.Budget
	if w.memory.Used() == 0 {
		bytes += memory.Allowance // which counts too: the request has its own
	}
	return b.InUse() <= b.Limit()/4 && w.memory.Grow(bytes)
}

// read checks the body against its declaration.
func (s *seen) read(w *Watch) {
	defer s.stop()
	if s.content == nil || s.unread != "" {
		return
	}
	if !s.isComplete {
		s.leave(incomplete)
		return
	}
	w.memory.SetDeadline(time.Now().Add(patience))
	if len(s.text) >= storage.HeavyText && !w.memory.Work() {
		s.leave(busy)
		return
	}
	text, err := s.text, error(nil)
	if s.encoding != nil {
		text, err = s.decode(w)
	}
	var found []contract.Departure
	if err == nil {
		limits := w.limits.Stored
		limits.Memory = &w.memory
		found, err = s.content.CheckBody(text, limits)
	}
	var why *document.Error
	switch {
	case errors.Is(err, compress.ErrMalformed):
		found = []contract.Departure{{Kind: contract.OfBody, Detail: "must be encoded as its Content-Encoding says"}}
	case errors.Is(err, compress.ErrTooLarge), errors.As(err, &why) && why.Code == document.TooLarge:
		s.leave(tooLarge)
	case err != nil:
		s.leave(noMemory)
	}
	s.found = append(s.found, found...)
}

// decode returns the body without its encoding.
func (s *seen) decode(w *Watch) ([]byte, error) {
	need := compress.Memory(s.encoding)
	if !w.grow(need) {
		return nil, compress.ErrMemory
	}
	defer w.memory.Shrink(need)
	return compress.Decode(s.text, s.encoding, w.limits.Body, w.grow)
}

// A teeStream is the body of an answer that is kept while it is sent.
type teeStream struct {
	message.Stream
	watch *Watch
	seen  *seen // nil once nothing more is taken
}

// Read implements message.Stream.
func (t *teeStream) Read(p []byte) (int, error) {
	n, err := t.Stream.Read(p)
	t.took(p[:n], err)
	return n, err
}

// ReadReady implements message.Stream.
func (t *teeStream) ReadReady(p []byte) (int, error) {
	n, err := t.Stream.ReadReady(p)
	t.took(p[:n], err)
	return n, err
}

func (t *teeStream) took(part []byte, err error) {
	s := t.seen
	if s == nil {
		return
	}
	s.take(t.watch, part)
	s.isComplete = s.isComplete || err == io.EOF
	if length := t.Length(); length >= 0 && int64(len(s.text)) == length {
		s.isComplete = true
	}
}
