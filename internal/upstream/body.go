package upstream

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// Body is the body of an answer that is streamed. It is read by one goroutine
// at a time; Interrupt may be called from any other.
type Body struct {
	config  *Config
	from    bodySource
	sending *uploadSender // the request, if it is still being sent; nil if it was sent before
	prefix  []byte        // was read before, comes first
	timeout time.Duration
	length  int64

	interrupted atomic.Bool
	mu          sync.Mutex // guards from against Interrupt after the release
	released    bool
	err         error
	trailers    []message.Header
}

// ErrInterrupted is the error of a Read after Interrupt.
var ErrInterrupted = message.ErrInterrupted

// newBody returns the rest of the answer as a stream.
func (r *bodyReceiver) newBody(prefix []byte) *Body {
	timeout := r.config.Timeouts.Stream
	_, isHTTP1 := r.from.(*conn)
	switch w := r.config.Watches; {
	case r.length >= 0:
		timeout = r.req.bodyTimeout(&r.config.Timeouts)
	case r.req.IsWatch && isHTTP1 && w != nil && w.Period > 0:
		timeout = w.Period + w.Grace
	}
	return &Body{config: r.config, from: r.from, sending: r.sending, prefix: prefix, timeout: timeout, length: r.length}
}

// Length is the length of the body in bytes, -1 if it is not known.
func (b *Body) Length() int64 { return b.length }

// Ready reports whether a Read would find something without waiting for the
// backend, if only a piece of framing.
func (b *Body) Ready() bool {
	return len(b.prefix) > 0 || b.err != nil || b.from.buffered() > 0
}

// Wait waits until a Read would find something, if only the end. It takes no memory for the time, neither the caller's
// nor the connection's buffer, which others use meanwhile. A Read would return the same error.
func (b *Body) Wait() error {
	if !b.Ready() {
		if err := b.arm(); err != nil {
			return err
		}
		if err := b.fail(b.from.wait()); err != nil {
			return err
		}
	}
	if b.err == nil {
		b.from.prepare()
	}
	return nil
}

// Trailers returns the fields that came behind the body, once a read has returned io.EOF. Those of HTTP/1.1 are read
// and dropped.
func (b *Body) Trailers() []message.Header { return b.trailers }

// Read waits for bytes of the body and reads what has arrived; io.EOF comes
// after the last byte of a complete body only. The connection goes back to the
// pool with it.
func (b *Body) Read(p []byte) (int, error) { return b.read(p, true) }

// ReadReady reads bytes that have arrived already; if there are none it
// returns 0 and no error instead of waiting.
func (b *Body) ReadReady(p []byte) (int, error) { return b.read(p, false) }

func (b *Body) read(p []byte, wait bool) (int, error) {
	if len(b.prefix) > 0 {
		n := copy(p, b.prefix)
		if b.prefix = b.prefix[n:]; len(b.prefix) == 0 {
			b.prefix = nil // a stream may go on for hours without its memory
		}
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	if wait && b.from.buffered() == 0 {
		if err := b.arm(); err != nil {
			return 0, err
		}
	}
	n, err := b.from.read(p, wait)
	if err == io.EOF {
		return n, b.end(io.EOF)
	}
	return n, b.fail(err)
}

// arm sets the deadline of the next read.
func (b *Body) arm() error {
	if err := b.from.arm(time.Now(), b.timeout, time.Time{}); err != nil {
		return b.fail(err)
	}
	if b.interrupted.Load() {
		return b.end(ErrInterrupted)
	}
	return nil
}

// fail ends the body with an error, if it is one.
func (b *Body) fail(err error) error {
	if err == nil {
		return nil
	}
	if b.interrupted.Load() {
		return b.end(ErrInterrupted)
	}
	failure := ioFailed(true, err)
	failure.setRetryAfter(b.config)
	if b.config.OnError != nil && failure.Kind != NoMemory {
		b.config.OnError(failure)
	}
	return b.end(failure)
}

// end gives the connection back: to the pool after a complete body with
// nothing behind it, else it is closed.
func (b *Body) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		b.released = true
		b.err = err
		end := b.sending.end
		if err == io.EOF {
			end = b.sending.finish
			b.trailers = b.from.trailers()
		}
		isWhole := end() && err == io.EOF && !b.interrupted.Load()
		b.from.release(isWhole, balance.Inconclusive)
		b.from = nil
	}
	return b.err
}

// Interrupt makes the Read in progress and those to come return.
func (b *Body) Interrupt() {
	b.interrupted.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		b.from.interrupt()
	}
}

// Close ends the use of the body. A body that was not read to its end takes
// the connection with it.
func (b *Body) Close() error {
	_ = b.end(ErrInterrupted)
	return nil
}
