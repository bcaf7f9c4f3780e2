package server

import (
	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/secure"
)

// An input holds what the client has sent and the server has not used yet. It has a buffer only
// while there is a use for one.
type input struct {
	socket  *socket
	buffers *buffers
	// pooled is the memory of buf, except while an outsize head needs more; nil if there is no
	// buffer.
	pooled *[readBuffer]byte
	buf    []byte
	r, w   int // buf[r:w] was received and not used

	// ready is how a connection without TLS is read while it is idle: without a buffer until
	// something comes. It is nil if the socket does not allow for that.
	ready func(fd uintptr) bool
}

// waitBare makes the first wait for each request go without a buffer, if the socket allows for
// that.
func (in *input) waitBare() {
	if in.socket.bare.raw != nil {
		in.ready = in.readReady
	}
}

// borrow makes sure that there is a buffer.
func (in *input) borrow() {
	if in.buf == nil {
		in.pooled = in.buffers.read()
		in.buf = in.pooled[:]
	}
}

// giveBack gives the buffer, which has nothing in it, to other connections.
func (in *input) giveBack() {
	if in.pooled == nil {
		return
	}
	in.buffers.putRead(in.pooled)
	in.pooled, in.buf = nil, nil
	in.r, in.w = 0, 0
}

// restart moves what is not used to the start of the buffer, and drops the memory of an outsize
// head.
func (in *input) restart() {
	in.borrow()
	switch {
	case len(in.buf) > readBuffer && in.w-in.r <= readBuffer:
		copy(in.pooled[:], in.buf[in.r:in.w])
		in.buf = in.pooled[:]
		in.r, in.w = 0, in.w-in.r
	case in.r > 0:
		in.r, in.w = 0, copy(in.buf, in.buf[in.r:in.w])
	}
}

// await waits for the first bytes. The buffer is empty. After an error nothing was read.
func (in *input) await() (err error) {
	if over, ok := in.socket.Conn.(*secure.Conn); ok {
		in.giveBack()
		err = over.Wait()
		if in.borrow(); err == nil {
			in.w, err = over.Read(in.buf)
		}
		return err
	}
	if in.ready == nil {
		in.w, err = in.socket.Read(in.buf)
		return err
	}
	in.giveBack()
	return in.socket.bare.raw.Read(in.ready)
}

// readReady reads what has come, and returns false if nothing has. An idle connection has no
// buffer: the one that was used last, whose memory is still near, is used again.
func (in *input) readReady(fd uintptr) bool {
	in.borrow()
	n, waits, _ := peek.Read(fd, in.buf) // after an error nothing was read
	if waits {
		in.giveBack()
		return false
	}
	in.w = n
	return true
}

// grow makes room for so many bytes in all.
func (in *input) grow(size int) {
	in.buf = append(make([]byte, 0, size), in.buf...)[:size]
}

// fill reads into the buffer, which has room.
func (in *input) fill() (int, error) {
	n, err := in.socket.Read(in.buf[in.w:])
	in.w += n
	return n, err
}

// isUsed reports whether nothing is left in the buffer.
func (in *input) isUsed() bool { return in.r == in.w }

// received returns all that the buffer has, used or not.
func (in *input) received() []byte { return in.buf[:in.w] }
