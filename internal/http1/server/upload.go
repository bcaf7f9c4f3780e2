package server

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/status"
)

// An Upload is the body of a request that is read while it is sent on, in constant memory. One goroutine
// reads it, beside the one that serves the connection; Interrupt may be called from any.
type Upload struct {
	request *Request
	length  int64 // -1 if it is not known
	left    int64 // of a body of known length
	chunk   http1.Chunked
	began   bool
	taken   atomic.Int64 // bytes read so far

	mu    sync.Mutex
	state uploadState
}

type uploadState uint8

const (
	underWay    uploadState = iota
	over                    // it was read to its end
	interrupted             // it is not read to its end any more
)

// Upload returns the body of the request as one that is read while it is sent on. It is read instead of
// ReadBody, to its end or not at all.
func (r *Request) Upload() *Upload {
	u := &Upload{request: r, length: r.Head.ContentLength, left: r.Head.ContentLength}
	if r.Head.Chunked {
		u.length = -1
	}
	r.body.upload = u
	return u
}

// HasArrived reports whether the whole body has come already, so that ReadBody neither waits nor takes memory.
func (r *Request) HasArrived() bool {
	in := &r.conn.in
	return !r.Head.Chunked && int64(in.w-in.r) >= r.Head.ContentLength
}

// Length returns the length of the body in bytes; -1 if it is not known.
func (u *Upload) Length() int64 { return u.length }

// Interrupt makes the Read in progress and those to come return.
func (u *Upload) Interrupt() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == underWay {
		u.state = interrupted
		_ = u.request.conn.socket.SetReadDeadline(time.Unix(1, 0)) // if it fails there is nothing to end
	}
}

// end notes that the body was read to its end. The connection is the next request's from then on.
func (u *Upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == underWay {
		u.state = over
	}
}

func (u *Upload) is(s uploadState) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state == s
}

// Read waits for bytes of the body and reads what has arrived; io.EOF comes after the last byte of a complete
// body. Any other error is http1.ErrInterrupted or a *status.Error.
func (u *Upload) Read(p []byte) (int, error) {
	if !u.began {
		u.began = true
		if err := u.request.expect(); err != nil {
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

// readChunked reads data of a chunked body, and the framing before it. Trailers are read and dropped: nobody
// has looked at a header that comes after the body.
func (u *Upload) readChunked(p []byte) (int, error) {
	in := &u.request.conn.in
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
func (u *Upload) readData(p []byte) (int, error) {
	in := &u.request.conn.in
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
func (u *Upload) fill() error {
	in := &u.request.conn.in
	in.r, in.w = u.request.headEnd, u.request.headEnd
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
func (u *Upload) arm() error {
	s := &u.request.conn.socket
	s.armRead(u.request.conn.server.o.BodyTimeout)
	if u.is(interrupted) {
		return http1.ErrInterrupted
	}
	return nil
}

func (u *Upload) failed(err error) error {
	if u.is(interrupted) {
		return http1.ErrInterrupted
	}
	return bodyError(err)
}

// isUnderWay reports whether the body is still being read.
func (u *Upload) isUnderWay() bool { return u != nil && !u.is(over) }
