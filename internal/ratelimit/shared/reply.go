package shared

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/admission-gateway/gateway/internal/memory"
)

// go-redis believes what a reply announces: it makes room for as many values as *2000000000 says, and keeps a line until
// it ends. So each connection reads the frames of the replies itself, before go-redis gets their bytes, and is cut by the
// byte that goes beyond a bound.

// What the gateway asks a server is answered with some values: decisions of at most maxBatch calls. A cluster also names
// its servers and the slots that each of them has, 16384 at most, and its commands.
var (
	serverBounds  = replyBounds{bytes: 4 << 20, values: 1 << 16}
	clusterBounds = replyBounds{bytes: 16 << 20, values: 1 << 19}
)

const (
	// replyValueBytes is about what go-redis holds of a value besides its bytes, and replyByteBytes of a byte: a line
	// that is read in parts is copied as it grows.
	replyValueBytes = 64
	replyByteBytes  = 3
	// replyStep is how much memory is asked for at a time. The first of it is not asked for.
	replyStep = 64 << 10
)

// errReplyNoMemory is the error if the budget has no memory for an answer within the bounds.
var errReplyNoMemory = errors.New("an answer of Redis is larger than the memory that is left of `limits.bodiesInFlightBytes`")

// bounded is a connection that is cut by an answer beyond the bounds. Only what is answered to one
// question counts together. Sentinels also send notifications, while a question may be sent.
type bounded struct {
	net.Conn
	bounds replyBounds

	mu     sync.Mutex // guards what follows
	frames frames
	held   memory.Reservation // for what was answered since the last question
	asked  int                // of it, in bytes
	failed error
}

// direct is a bounded connection that go-redis may look at: it finds out whether the server has closed it.
type direct struct {
	*bounded
	syscall.Conn
}

// bound puts the bounds on a connection.
func (o *Options) bound(c net.Conn) net.Conn {
	b := &bounded{Conn: c, bounds: serverBounds}
	if o.Mode == Cluster {
		b.bounds = clusterBounds
	}
	if o.Memory != nil {
		b.held.Open(o.Memory, nil)
	}
	if raw, ok := c.(syscall.Conn); ok {
		return direct{b, raw}
	}
	return b
}

// Read reads what go-redis may have.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = b.take(p[:n])
	}
	if b.failed != nil {
		b.release()
		_ = b.Conn.Close() // the cause is returned
		return 0, b.failed
	}
	return n, err
}

// take reads the frames of some bytes, and asks for the memory that go-redis takes for them.
func (b *bounded) take(p []byte) error {
	err := b.frames.read(p, &b.bounds)
	if err != nil {
		return err
	}
	need := b.frames.bytes*replyByteBytes + b.frames.values*replyValueBytes
	for need > b.asked+replyStep {
		if !b.held.Grow(replyStep) {
			return errReplyNoMemory
		}
		b.asked += replyStep
	}
	return nil
}

// Write sends a question: what was answered before it is done with.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.frames.bytes, b.frames.values = 0, 0
	b.release()
	b.mu.Unlock()
	return b.Conn.Write(p)
}

// Close implements net.Conn.
func (b *bounded) Close() error {
	b.mu.Lock()
	b.release()
	b.mu.Unlock()
	return b.Conn.Close()
}

// release gives back the memory for what was answered.
func (b *bounded) release() {
	if b.asked > 0 {
		b.held.Shrink(b.asked)
		b.asked = 0
	}
}
