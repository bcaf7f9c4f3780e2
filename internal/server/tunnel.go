package server

import (
	"bytes"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// SendTunnel implements Exchange: the connection goes on in the other protocol.
func (x *exchange) SendTunnel(head, early []byte, backend net.Conn, closeBackend func()) bool {
	x.finishBody()
	x.answered, x.fate = true, end
	c := x.conn
	c.watched.turns.Add(1) // each end of the tunnel shows to who reads from it
	defer c.watched.turns.Add(1)
	t := tunnel{
		client: c.socket.Conn, closeClient: c.socket.close, backend: backend, closeBackend: closeBackend,
		buffers: &c.server.buffers,
		idle:    c.server.settings.Load().UpgradeIdleTimeout, start: time.Now(),
	}
	c.sending.setTunnel(t.end) // before the client knows of it
	if c.server.flows(c) {
		t.end()
	}
	if c.sendAnswer(slices.Concat(head, early)) != nil { // in one write, as most backends send both
		return true
	}
	c.socket.setReadDeadline(time.Time{})
	c.socket.setWriteDeadline(time.Time{})
	fromClient := bytes.Clone(c.in.buf[c.in.r:c.in.w])
	c.in.r = c.in.w
	x.lend()
	t.run(fromClient, nil)
	return true
}

// A tunnel carries bytes both ways between a client and a backend, each way as fast as the receiver
// takes them: there is one buffer for each way, and only while there are bytes. If one end
// finishes, the other one sees that and may go on; an end that breaks ends both.
//
// Bytes are copied. To let the kernel splice them saves a twentieth of the CPU time of a bulk
// transfer, takes two pipes for each connection, and hides for how long an end was silent.
type tunnel struct {
	client, backend net.Conn
	closeBackend    func()
	closeClient     func() // from another goroutine, without waiting
	buffers         *buffers

	idle     time.Duration // of both ways together, after which both ends are closed; 0 for no limit
	start    time.Time
	moved    atomic.Int64 // when the last bytes moved, since start
	isHalved atomic.Bool  // one way is over
	timer    *time.Timer
}

// halfClosedTimeout is how long the one end may be silent when the other one has finished.
const halfClosedTimeout = time.Minute

// run returns when both ways are over and both ends closed. What is given was sent already by the client and by the
// backend.
func (t *tunnel) run(fromClient, fromBackend []byte) {
	defer t.cut()
	t.timer = time.AfterFunc(math.MaxInt64, t.checkIdle)
	defer t.timer.Stop()
	if t.idle > 0 {
		t.timer.Reset(t.idle)
	}
	var other sync.WaitGroup
	other.Go(func() { t.carry(t.backend, t.client, fromClient) })
	t.carry(t.client, t.backend, fromBackend)
	other.Wait()
}

// cut closes both ends.
func (t *tunnel) cut() {
	_ = t.client.Close()
	t.closeBackend()
}

// end closes both ends from another goroutine, without waiting.
func (t *tunnel) end() {
	t.closeClient()
	go t.closeBackend() // it may say goodbye first
}

// checkIdle runs when the ends may have been silent for too long.
func (t *tunnel) checkIdle() {
	left := time.Duration(t.moved.Load()) + t.patience() - time.Since(t.start)
	if left <= 0 {
		t.cut()
		return
	}
	t.timer.Reset(left)
}

// patience is how long both ends may be silent.
func (t *tunnel) patience() time.Duration {
	switch {
	case !t.isHalved.Load():
		return t.idle
	case t.idle > 0:
		return min(t.idle, halfClosedTimeout)
	}
	return halfClosedTimeout
}

// carry carries bytes one way until its source finishes, or either end breaks. Those that were read already go first.
func (t *tunnel) carry(to, from net.Conn, early []byte) {
	if len(early) > 0 {
		if _, err := to.Write(early); err != nil {
			t.cut()
			return
		}
	}
	in := newSource(from)
	for {
		err := t.carryPart(to, in)
		switch {
		case err == nil:
			continue
		case err == io.EOF && closeWrite(to) == nil:
			t.halve()
		default:
			t.cut()
		}
		return
	}
}

// halve starts the shorter patience with the other way.
func (t *tunnel) halve() {
	t.moved.Store(int64(time.Since(t.start)))
	if !t.isHalved.Swap(true) {
		t.timer.Reset(t.patience())
	}
}

// carryPart waits for bytes and carries them.
func (t *tunnel) carryPart(to net.Conn, in *source) error {
	if err := in.wait(); err != nil {
		return err
	}
	buf := t.buffers.copy()
	defer t.buffers.putCopy(buf)
	n, err := in.conn.Read(buf[:])
	if n > 0 {
		t.moved.Store(int64(time.Since(t.start)))
		if _, werr := to.Write(buf[:n]); werr != nil {
			return werr
		}
	}
	return err
}

// source is the end that bytes come from.
type source struct {
	conn net.Conn
	wait func() error // without memory, until a read would not wait; if that can be known
}

func newSource(c net.Conn) *source {
	if wait := waiter(c); wait != nil {
		return &source{c, wait}
	}
	return &source{c, func() error { return nil }}
}
