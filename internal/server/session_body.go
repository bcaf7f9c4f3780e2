package server

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
)

// A streamBody is what has come of the body of a request and was not read. The lock of the session
// guards it.
type streamBody struct {
	budget *memory.Budget
	by     *memory.Holder
	bytes  []byte // in memory
	read   int    // of the bytes
	memory *[copyBuffer]byte
	small  *[readBuffer]byte
	pool   *buffers
	err    error // why the rest is of no use
	// into collects what comes, while ReadBody waits for it.
	into *bodyBuffer
	most int // bytes that it may collect
}

// take adds what has come. The lock is held.
func (x *streamExchange) take(p []byte) {
	b := &x.body
	x.got += int64(len(p))
	switch {
	case x.length >= 0 && x.got > x.length:
		x.malformed(errOtherLength)
		return
	case b.err != nil || x.client.HasLeft():
		return // no one reads it
	case b.into != nil:
		x.collect(p)
		return
	case len(p) == 0:
		return
	}
	if !b.hasRoom(len(p), x) {
		b.fail(x.session.server.settings.Load().Memory.full())
		x.changed.Broadcast()
		return
	}
	b.bytes = append(b.bytes, p...)
	x.changed.Broadcast()
}

// hasRoom makes room for n bytes, which the window allows for, if the budget does.
func (b *streamBody) hasRoom(n int, x *streamExchange) bool {
	if b.bytes == nil {
		b.pool = &x.session.server.buffers
		size := copyBuffer
		if x.length >= 0 && x.length <= readBuffer {
			size = readBuffer
		}
		if !b.budget.TakeFor(size, b.by) {
			return false
		}
		if size == readBuffer {
			b.small = b.pool.read()
			b.bytes = b.small[:0]
		} else {
			b.memory = b.pool.copy()
			b.bytes = b.memory[:0]
		}
	}
	if len(b.bytes)+n > cap(b.bytes) {
		b.bytes = b.bytes[:copy(b.bytes, b.bytes[b.read:])]
		b.read = 0
	}
	return true
}

// release gives the memory back.
func (b *streamBody) release() {
	if b.small != nil {
		b.pool.putRead(b.small)
		b.budget.GiveFor(readBuffer, b.by)
	}
	if b.memory != nil {
		b.pool.putCopy(b.memory)
		b.budget.GiveFor(copyBuffer, b.by)
	}
	b.bytes, b.read, b.small, b.memory = nil, 0, nil, nil
}

// fail has the reader of the body fail.
func (b *streamBody) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// collect adds what has come to the body that ReadBody waits for.
func (x *streamExchange) collect(p []byte) {
	b := &x.body
	if len(b.into.bytes)+len(p) > b.most {
		b.fail(tooLargeBody(int64(b.most)))
		x.changed.Broadcast()
		return
	}
	if err := b.into.append(p, b.most); err != nil {
		b.fail(err)
		x.changed.Broadcast()
		return
	}
	x.session.windowUpdate(x.id, x.receive.Consume(len(p)))
}

// collectWindow is the largest window of a stream whose body is being read whole.
const collectWindow = 1 << 20

// ReadBody implements Exchange.
func (x *streamExchange) ReadBody(limit int64) ([]byte, error) {
	switch {
	case x.isExtended:
		return nil, nil
	case x.length > limit:
		return nil, tooLargeBody(limit)
	}
	s, b := x.session, &x.body
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.isBodyOver && b.err == nil {
		x.request.body.bytes = b.bytes[b.read:] // its memory is given back with the stream's
		if x.size = len(x.request.body.bytes); int64(x.size) > limit {
			return nil, tooLargeBody(limit)
		}
		return x.request.body.bytes, nil
	}
	x.expect()
	b.most = int(min(limit, 1<<40))
	if b.into = &x.request.body; b.err == nil && len(b.bytes) > 0 {
		x.collect(b.bytes[b.read:])
		b.release()
	}
	if most := x.length; b.err == nil {
		if most < 0 {
			most = limit
		}
		s.windowUpdate(x.id, x.receive.Grow(int(min(most, collectWindow))))
	}
	s.flush()
	until := time.Now().Add(s.server.settings.Load().BodyTimeout)
	for b.err == nil && !x.isBodyOver {
		if !x.await(until) {
			b.fail(bodyError(errIdle))
		}
	}
	if b.into = nil; b.err != nil {
		return nil, b.err
	}
	x.size = len(x.request.body.bytes)
	return x.request.body.bytes, nil
}

// expect asks the client for the body, if it waits for that. The lock is held.
func (x *streamExchange) expect() {
	if x.request.Head.Expect && x.got == 0 {
		x.request.Head.Expect = false
		x.session.out.block(x.id, false, x.session.frame,
			func(dst []byte) []byte { return append(dst, continueBlock...) })
	}
}

// HasArrived implements Exchange. A body with trailers counts as one that is to come, because only an upload has them.
func (x *streamExchange) HasArrived() bool {
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	return x.isExtended || x.isBodyOver && x.body.err == nil && x.trailers == nil
}

// BodyBytes implements Exchange.
func (x *streamExchange) BodyBytes() int64 {
	if x.upload != nil {
		return x.upload.taken.Load()
	}
	return int64(x.size)
}

// A streamUpload is the body of a request that is read while it is sent on. It implements
// message.Upload.
type streamUpload struct {
	exchange *streamExchange
	taken    atomic.Int64 // bytes read so far
	mayPause bool
	stopped  bool // the lock of the session guards it
}

// Upload implements Exchange.
func (x *streamExchange) Upload(mayPause bool) message.Upload {
	x.upload = &streamUpload{exchange: x, mayPause: mayPause}
	return x.upload
}

// Length implements message.Upload.
func (u *streamUpload) Length() int64 { return u.exchange.length }

// Trailers implements message.Upload.
func (u *streamUpload) Trailers() []message.Header {
	u.exchange.session.mu.Lock()
	defer u.exchange.session.mu.Unlock()
	return u.exchange.trailers
}

// Interrupt implements message.Upload.
func (u *streamUpload) Interrupt() {
	u.exchange.session.mu.Lock()
	defer u.exchange.session.mu.Unlock()
	u.stopped = true
	u.exchange.changed.Broadcast()
}

// Read waits for bytes of the body and reads what has arrived; io.EOF comes after the last byte of a complete
// body.
func (u *streamUpload) Read(p []byte) (int, error) {
	x := u.exchange
	s, b := x.session, &x.body
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.request.Head.Expect {
		x.expect()
		s.flush()
	}
	var until time.Time
	if !u.mayPause {
		until = time.Now().Add(s.server.settings.Load().BodyTimeout)
	}
	for {
		switch {
		case u.stopped:
			return 0, message.ErrInterrupted
		case b.read < len(b.bytes):
			n := x.readBody(p)
			u.taken.Add(int64(n))
			return n, nil
		case b.err != nil:
			return 0, b.err
		case x.isBodyOver:
			return 0, io.EOF
		case !x.await(until):
			b.fail(bodyError(errIdle))
		}
	}
}

// readBody reads what has come of the body, and lets the client send so much more. The lock is held.
func (x *streamExchange) readBody(p []byte) int {
	b := &x.body
	n := copy(p, b.bytes[b.read:])
	if b.read += n; b.read == len(b.bytes) {
		b.release()
	}
	if update := x.receive.Consume(n); update > 0 && !x.isBodyOver {
		x.session.windowUpdate(x.id, update)
		x.session.flush()
	}
	return n
}

// rest ends the use of the request's body, right before the answer goes out. The lock is held.
func (x *streamExchange) rest() {
	if x.upload == nil {
		x.request.ReleaseBody()
		x.body.release()
		if !x.isBodyOver {
			x.body.fail(bodyCut())
		}
	}
}
