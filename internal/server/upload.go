package server

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/h1"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
)

// An upload is the body of a request that is read while it is sent on, in constant memory. One goroutine
// reads it, beside the one that serves the connection. It implements [message.Upload].
type upload struct {
	exchange *exchange
	length   int64 // -1 if it is not known
	left     int64 // of a body of known length
	chunk    h1.Chunked
	began    bool
	taken    atomic.Int64 // bytes read so far

	mu    sync.Mutex
	state uploadState
}

type uploadState uint8

const (
	underWay    uploadState = iota
	over                    // it was read to its end
	interrupted             // it is not read to its end any more
)

// Upload implements Exchange.
func (x *exchange) Upload(bool) message.Upload {
	u := &upload{exchange: x, length: x.request.Head.ContentLength, left: x.request.Head.ContentLength}
	x.upload = u
	return u
}

// HasArrived implements Exchange.
func (x *exchange) HasArrived() bool {
	in, length := &x.conn.in, x.request.Head.ContentLength
	return length >= 0 && int64(in.w-in.r) >= length
}

// Length implements message.Upload.
func (u *upload) Length() int64 { return u.length }

// Trailers implements message.Upload. Trailers of HTTP/1.1 are read and dropped: they come in a
// framing that many servers skip without a look, and a field that was not checked must not become
// one of the request.
func (u *upload) Trailers() []message.Header { return nil }

// Interrupt implements message.Upload.
func (u *upload) Interrupt() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == underWay {
		u.state = interrupted
		_ = u.exchange.conn.socket.SetReadDeadline(time.Unix(1, 0)) // if it fails there is nothing to end
	}
}

// end notes that the body was read to its end. The connection is the next request's from then on.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == underWay {
		u.state = over
	}
}

func (u *upload) is(s uploadState) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state == s
}

// Read waits for bytes of the body and reads what has arrived; io.EOF comes after the last byte of a complete
// body. Any other error is message.ErrInterrupted or a *status.Error.
func (u *upload) Read(p []byte) (int, error) {
	if !u.began {
		u.began = true
		if err := u.exchange.expect(); err != nil {
			return 0, err
		}
	}
	if u.length < 0 {
		return u.readChunked(p)
	}
	if u.left == 0 {
		u.end()
		return 0, io.EOF
	}
	n, err := u.readData(p[:min(int64(len(p)), u.left)])
	u.left -= int64(n)
	if u.left == 0 {
		u.end()
	}
	return n, err
}

// readChunked reads data of a chunked body, and the framing before it. Trailers are read and dropped.
func (u *upload) readChunked(p []byte) (int, error) {
	in := &u.exchange.conn.in
	for {
		switch left := u.chunk.Left(); {
		case u.chunk.Done():
			u.end()
			return 0, io.EOF
		case left > 0:
			n, err := u.readData(p[:min(int64(len(p)), left)])
			u.chunk.Take(int64(n))
			return n, err
		}
		if in.isUsed() {
			if err := u.fill(); err != nil {
				return 0, err
			}
		}
		used, flaw := u.chunk.Next(in.buf[in.r:in.w])
		in.r += used
		if flaw != nil {
			bad := flaw.OfRequest()
			return 0, status.Coded(bad.Code, bad.Message)
		}
	}
}

// readData reads data that is in the connection's buffer, else straight from the socket.
func (u *upload) readData(p []byte) (int, error) {
	in := &u.exchange.conn.in
	if !in.isUsed() {
		n := copy(p, in.buf[in.r:in.w])
		in.r += n
		u.taken.Add(int64(n))
		return n, nil
	}
	if err := u.arm(); err != nil {
		return 0, err
	}
	n, err := in.socket.Read(p)
	if n == 0 {
		return 0, u.failed(err)
	}
	u.taken.Add(int64(n))
	return n, nil
}

// fill reads more into the connection's buffer, behind the head, which stays in use.
func (u *upload) fill() error {
	in := &u.exchange.conn.in
	in.r, in.w = u.exchange.headEnd, u.exchange.headEnd
	if len(in.buf)-in.w < leastRoom {
		in.grow(len(in.buf) + readBuffer)
	}
	if err := u.arm(); err != nil {
		return err
	}
	if n, err := in.fill(); n == 0 {
		return u.failed(err)
	}
	return nil
}

// arm sets the time within which the client must send something.
func (u *upload) arm() error {
	s := &u.exchange.conn.socket
	s.armRead(u.exchange.conn.server.settings.Load().BodyTimeout)
	if u.is(interrupted) {
		return message.ErrInterrupted
	}
	return nil
}

func (u *upload) failed(err error) error {
	if u.is(interrupted) {
		return message.ErrInterrupted
	}
	return bodyError(err)
}

// isUnderWay reports whether the body is still being read.
func (u *upload) isUnderWay() bool { return u != nil && !u.is(over) }
