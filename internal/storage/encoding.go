package storage

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// ReadWhole reads the body of an answer that is still on its way, if it has at most limit bytes and there is memory
// for it. It reports false if it stays a stream, of the same bytes.
func ReadWhole(e *Exchanges, limit int64) (isWhole bool, err error) {
	if err := StreamPlain(e); err != nil {
		return false, err
	}
	a := &e.Response
	from := a.Stream()
	switch {
	case from == nil:
		return true, nil
	case from.Length() > limit:
		return false, nil
	}
	var body []byte
	for {
		if len(body) == cap(body) {
			more := max(32<<10, len(body))
			if length := from.Length(); length >= 0 {
				more = int(length) + 1 // with room to find the end
			}
			if !e.Memory.Try(more) { // the answer is sent without it, too
				break
			}
			body = slices.Grow(body, more)
		}
		n, err := from.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; err == io.EOF {
			if len(from.Trailers()) > 0 {
				break
			}
			a.Close()
			a.SetBorrowedBody(body)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if int64(len(body)) > limit {
			break
		}
	}
	a.SetStream(&resumedStream{Stream: from, read: body})
	return false, nil
}

// resumedStream is a stream of which a part was read.
type resumedStream struct {
	message.Stream
	read []byte
}

// Ready implements message.Stream.
func (s *resumedStream) Ready() bool { return len(s.read) > 0 || s.Stream.Ready() }

// Wait implements message.Stream.
func (s *resumedStream) Wait() error {
	if len(s.read) > 0 {
		return nil
	}
	return s.Stream.Wait()
}

// ReadReady implements message.Stream.
func (s *resumedStream) ReadReady(p []byte) (int, error) {
	if len(s.read) > 0 {
		return s.Read(p)
	}
	return s.Stream.ReadReady(p)
}

// Read implements io.Reader.
func (s *resumedStream) Read(p []byte) (int, error) {
	if len(s.read) > 0 {
		n := copy(p, s.read)
		s.read = s.read[n:]
		return n, nil
	}
	return s.Stream.Read(p)
}

// isEncoded reports whether a Content-Encoding says that a body is encoded.
func isEncoded(encoding []byte) bool {
	return len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity"))
}

// StreamPlain makes the body of an answer that is edited on its way one that is not encoded. A backend was asked not
// to encode it, and some do all the same.
func StreamPlain(e *Exchanges) error {
	a := &e.Response
	encoding := a.ContentEncoding()
	if !isEncoded(encoding) {
		return nil
	}
	if e.IsHead() {
		a.Remove(headerContentEncoding)
		return nil
	}
	if !compress.IsReadable(encoding) {
		return status.BadGateway("the backend's answer must not be encoded, because the gateway completes it, and asked for that")
	}
	d := &decodedStream{from: a.Stream(), encoding: bytes.Clone(encoding), share: e.Memory}
	if d.from == nil {
		whole := bytes.Clone(a.Body())
		if !e.Memory.Grow(len(whole)) {
			return e.Exhausted()
		}
		d.from = &wholeStream{Reader: bytes.NewReader(whole)}
	}
	a.Remove(headerContentEncoding, headerContentLength)
	a.SetStream(d)
	return nil
}

// ReadPlain makes the body of an answer that is in memory one that is not encoded, of at most limit bytes. It reports
// false if that cannot be.
func ReadPlain(e *Exchanges, a *message.Response, limit int64) bool {
	encoding := a.Header(headerContentEncoding)
	if !isEncoded(encoding) {
		return true
	}
	if a.IsStream() || !compress.IsReadable(encoding) || !e.Memory.Grow(compress.Memory(encoding)) {
		return false
	}
	defer e.Memory.Shrink(compress.Memory(encoding))
	body, err := compress.Decode(a.Body(), encoding, limit, e.Memory.Grow)
	if err != nil {
		return false
	}
	a.Remove(headerContentEncoding)
	a.Remove(exactBytes[:]...)
	a.SetBody(body)
	return true
}

// decodedStream is a body without its encoding. It takes memory from the first byte on.
type decodedStream struct {
	from     message.Stream
	encoding []byte
	share    *memory.Reservation
	reader   io.ReadCloser
	taken    int
	err      error
}

// Length implements message.Stream.
func (d *decodedStream) Length() int64 { return -1 }

// Ready implements message.Stream. What the reader has is unknown.
func (d *decodedStream) Ready() bool { return false }

// Wait implements message.Stream: until the first byte comes it takes nothing.
func (d *decodedStream) Wait() error {
	if d.reader == nil && d.err == nil {
		if err := d.from.Wait(); err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// ReadReady implements message.Stream.
func (d *decodedStream) ReadReady([]byte) (int, error) { return 0, nil }

// Interrupt implements message.Stream.
func (d *decodedStream) Interrupt() { d.from.Interrupt() }

// Trailers implements message.Stream.
func (d *decodedStream) Trailers() []message.Header { return d.from.Trailers() }

// Read implements io.Reader.
func (d *decodedStream) Read(p []byte) (n int, err error) {
	if d.reader == nil && d.err == nil {
		d.err = d.open()
	}
	if d.err != nil {
		return 0, d.err
	}
	if n, err = d.reader.Read(p); err != nil && err != io.EOF {
		err = unreadableAnswer(err)
	}
	return n, err
}

func (d *decodedStream) open() (err error) {
	if need := compress.Memory(d.encoding); d.share.Grow(need) {
		d.taken = need
	} else {
		return status.ServiceUnavailable("there is no memory to decode the backend's answer", 1)
	}
	if d.reader, err = compress.NewReader(d.from, d.encoding); err != nil {
		return unreadableAnswer(err)
	}
	return nil
}

// unreadableAnswer is the error of an answer that cannot be decoded; errors of its connection are unchanged.
func unreadableAnswer(err error) error {
	var answered *status.Error
	var failed *upstream.Error
	if errors.As(err, &answered) || errors.Is(err, message.ErrInterrupted) || errors.As(err, &failed) {
		return err
	}
	return status.BadGateway("the backend's answer must be encoded as its Content-Encoding says")
}

// Close implements io.Closer.
func (d *decodedStream) Close() error {
	if d.reader != nil {
		_ = d.reader.Close() // nothing is written
		d.reader = nil
	}
	d.share.Shrink(d.taken)
	d.taken, d.err = 0, message.ErrInterrupted
	return d.from.Close()
}

// wholeStream is a body that is in memory.
type wholeStream struct{ *bytes.Reader }

// Length implements message.Stream.
func (w *wholeStream) Length() int64 { return w.Size() }

// Ready implements message.Stream.
func (w *wholeStream) Ready() bool { return true }

// Wait implements message.Stream.
func (w *wholeStream) Wait() error { return nil }

// ReadReady implements message.Stream.
func (w *wholeStream) ReadReady(p []byte) (int, error) { return w.Read(p) }

// Interrupt implements message.Stream.
func (w *wholeStream) Interrupt() {}

// Trailers implements message.Stream.
func (w *wholeStream) Trailers() []message.Header { return nil }

// Close implements io.Closer.
func (w *wholeStream) Close() error { return nil }
