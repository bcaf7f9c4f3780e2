package proxy

import (
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// passage carries bytes both ways between a client and a backend, each way as fast as the receiver takes them: there is one
// buffer for each way, and only while there are bytes. An end that finishes is told to the other one, which may go on; an
// end that breaks ends both. Bytes are copied: to let the kernel splice them saves a twentieth of the CPU time of a bulk transfer,
// takes two pipes for each connection, and hides for how long an end was silent.
type passage struct {
	client, backend net.Conn
	closeBackend    func()
	server          *server

	idle   time.Duration // of both ways together, after which both ends are closed; 0 is none
	start  time.Time
	moved  atomic.Int64 // when the last bytes moved, since start
	halved atomic.Bool  // one way is over
	timer  *time.Timer
}

// halfClosedTimeout is how long the one end may be silent when the other one has finished.
const halfClosedTimeout = time.Minute

func newPassage(client, backend net.Conn, closeBackend func(), s *server) *passage {
	return &passage{client: client, backend: backend, closeBackend: closeBackend, server: s, idle: s.o.UpgradeIdleTimeout, start: time.Now()}
}

// run returns when both ways are over and both ends closed. What the client has sent already goes first.
func (r *passage) run(early []byte) {
	defer r.cut()
	r.timer = time.AfterFunc(math.MaxInt64, r.checkIdle)
	defer r.timer.Stop()
	if r.idle > 0 {
		r.timer.Reset(r.idle)
	}
	var other sync.WaitGroup
	other.Go(func() {
		if len(early) > 0 {
			if _, err := r.backend.Write(early); err != nil {
				r.cut()
				return
			}
		}
		r.carry(r.backend, r.client)
	})
	r.carry(r.client, r.backend)
	other.Wait()
}

// cut closes both ends.
func (r *passage) cut() {
	_ = r.client.Close()
	r.closeBackend()
}

// checkIdle runs when the ends may have been silent for too long.
func (r *passage) checkIdle() {
	left := time.Duration(r.moved.Load()) + r.patience() - time.Since(r.start)
	if left <= 0 {
		r.cut()
		return
	}
	r.timer.Reset(left)
}

// patience is how long both ends may be silent.
func (r *passage) patience() time.Duration {
	switch {
	case !r.halved.Load():
		return r.idle
	case r.idle > 0:
		return min(r.idle, halfClosedTimeout)
	}
	return halfClosedTimeout
}

// carry carries bytes one way until its source finishes, or either end breaks.
func (r *passage) carry(to, from net.Conn) {
	in := newSource(from)
	for {
		err := r.carryPart(to, in)
		switch {
		case err == nil:
			continue
		case err == io.EOF && closeWrite(to) == nil:
			r.halve()
		default:
			r.cut()
		}
		return
	}
}

// halve starts the shorter patience with the other way.
func (r *passage) halve() {
	r.moved.Store(int64(time.Since(r.start)))
	if !r.halved.Swap(true) {
		r.timer.Reset(r.patience())
	}
}

// carryPart waits for bytes and carries them.
func (r *passage) carryPart(to net.Conn, in *source) error {
	if err := in.wait(); err != nil {
		return err
	}
	p := in.small
	if p == nil || in.bulk {
		buf := r.server.copyBuffer()
		defer r.server.copies.Put(buf)
		p = buf[:]
	}
	n, err := in.conn.Read(p)
	in.bulk = n >= smallSource
	if n > 0 {
		r.moved.Store(int64(time.Since(r.start)))
		if _, werr := to.Write(p[:n]); werr != nil {
			return werr
		}
	}
	return err
}

// errNoHalf tells of a connection that cannot be closed for one way alone.
var errNoHalf = errors.New("the connection has no end for one way")

func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errNoHalf
	}
	return half.CloseWrite()
}

// source is the end that bytes come from. Where it is a socket it waits for them without memory; else, as with TLS, in a
// read into a small buffer, or a large one while there are many.
type source struct {
	conn  net.Conn
	raw   syscall.RawConn // of a socket
	ready func(fd uintptr) bool
	small []byte
	bulk  bool // the last read would have filled the small buffer
}

// smallSource is the size of the small buffer.
const smallSource = 1 << 10

func newSource(c net.Conn) *source {
	if tc, ok := c.(*net.TCPConn); ok {
		if raw, err := tc.SyscallConn(); err == nil {
			return &source{conn: c, raw: raw, ready: func(fd uintptr) bool {
				_, waits := peekClosed(fd)
				return !waits
			}}
		}
	}
	return &source{conn: c, small: make([]byte, smallSource)}
}

// wait waits until a read would not, where that can be known.
func (s *source) wait() error {
	if s.raw == nil {
		return nil
	}
	return s.raw.Read(s.ready)
}
