package upstream

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Body is the body of an answer that is streamed. It is read by one goroutine
// at a time; Interrupt may be called from any other.
type Body struct {
	client  *Client
	cn      *conn
	br      *bufio.Reader
	prefix  []byte // was read before, comes first
	timeout time.Duration
	length  int64

	interrupted atomic.Bool
	mu          sync.Mutex // guards cn against Interrupt after the release
	released    bool
	err         error
}

// ErrInterrupted is what Read returns after Interrupt.
var ErrInterrupted = errors.New("the stream was interrupted")

func newBody(c *Client, cn *conn, br *bufio.Reader, prefix []byte, timeout time.Duration) *Body {
	b := &Body{client: c, cn: cn, br: br, prefix: prefix, timeout: timeout, length: -1}
	if cn.frame.kind == frameLength {
		b.length = cn.frame.left
	}
	return b
}

// Length is the length of the body in bytes, -1 where it is not known.
func (b *Body) Length() int64 { return b.length }

// Ready reports whether a Read would find something without waiting for the
// backend, if only a piece of framing.
func (b *Body) Ready() bool {
	return len(b.prefix) > 0 || b.err != nil || b.br.Buffered() > 0
}

// Wait waits until a Read would find something, if only the end. It takes no memory for the time, neither the caller's nor
// that of the connection's buffer, which others use meanwhile. The error is that of a Read.
func (b *Body) Wait() error {
	if b.Ready() {
		return nil
	}
	if err := b.arm(); err != nil {
		return err
	}
	b.client.readers.Put(b.br)
	err := b.cn.await()
	b.br = b.client.reader(b.cn)
	return b.fail(err)
}

// Read waits for bytes of the body and reads what has arrived; io.EOF comes
// after the last byte of a complete body only. The connection goes back to the
// pool with it.
func (b *Body) Read(p []byte) (int, error) { return b.read(p, true) }

// ReadReady reads bytes that have arrived already; where there are none it
// returns 0 and no error instead of waiting.
func (b *Body) ReadReady(p []byte) (int, error) { return b.read(p, false) }

func (b *Body) read(p []byte, wait bool) (int, error) {
	if len(b.prefix) > 0 {
		n := copy(p, b.prefix)
		b.prefix = b.prefix[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	if wait && b.br.Buffered() == 0 {
		if err := b.arm(); err != nil {
			return 0, err
		}
	}
	n, err := b.cn.frame.read(b.br, p, wait)
	if err == io.EOF {
		return n, b.end(io.EOF)
	}
	return n, b.fail(err)
}

// arm sets the deadline of the next read.
func (b *Body) arm() error {
	if err := b.cn.armRead(time.Now(), b.timeout, time.Time{}); err != nil {
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
	failure := b.client.ioFailed(true, err)
	if b.client.config.OnError != nil {
		b.client.config.OnError(failure)
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
		reusable := err == io.EOF && !b.cn.answer.Close && b.br.Buffered() == 0 && !b.interrupted.Load()
		if reusable {
			surplus, end := b.cn.holds()
			reusable = !surplus && !end
		}
		b.client.release(b.cn, b.br, reusable, noVerdict)
		b.cn, b.br = nil, nil
	}
	return b.err
}

// Interrupt makes the Read in progress and those to come return.
func (b *Body) Interrupt() {
	b.interrupted.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		// Best effort: if it fails the connection is dead, and Read sees that.
		_ = b.cn.SetReadDeadline(time.Unix(1, 0))
	}
}

// Close ends the use of the body. A body that was not read to its end takes
// the connection with it.
func (b *Body) Close() error {
	_ = b.end(ErrInterrupted)
	return nil
}
