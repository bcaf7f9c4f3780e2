package shared

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/admission-gateway/gateway/internal/memory"
)

// go-redis makes room for as much as a reply announces: *2000000000 is a list, $2000000000 a string. So each connection
// adds up what is announced before go-redis reads it, and is cut by the byte that goes beyond a bound.

// replyBounds limit what a server may answer to one question.
type replyBounds struct {
	bytes  int // in all
	values int // in lists, with the lists
}

// A server answers decisions of at most maxBatch calls with a few values. A cluster also names its servers, their
// slots, 16384 at most, and its commands.
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

var (
	// errReplyNoMemory is the error if the budget has no memory for an answer within the bounds.
	errReplyNoMemory = errors.New("an answer of Redis is larger than the memory that is left of `limits.bodiesInFlightBytes`")
	errNotRESP       = errors.New("what Redis answers is not its protocol")
)

// announced adds up what replies announce. It reads them as go-redis does, which takes strings by their length and all
// else by lines; whether a value is in a list makes no difference.
type announced struct {
	bytes, values int // since they were set to 0

	isInLine bool
	kind     byte   // of the value that the line begins
	length   []byte // that the line has, if its kind has one
	skip     int    // bytes that are left of a string and the end of its line
}

const (
	replyKinds  = "+-:_,#($!=*~>%|"
	longKinds   = "$!=*~>%|" // which announce a length
	maxLength   = 16         // bytes of the text of a length
	asideValues = 16         // for a list about another value: go-redis has a call open for it until the value comes
)

// read adds what some bytes announce. The error says that they go beyond the bounds, or are no replies.
func (a *announced) read(p []byte, most *replyBounds) error {
	for len(p) > 0 {
		if a.skip > 0 {
			n := min(a.skip, len(p))
			p, a.skip = p[n:], a.skip-n
			continue
		}
		c := p[0]
		p = p[1:]
		a.bytes++
		switch {
		case !a.isInLine:
			if strings.IndexByte(replyKinds, c) < 0 {
				return errNotRESP
			}
			a.isInLine, a.kind, a.length = true, c, a.length[:0]
		case c == '\n':
			a.isInLine = false
			if err := a.announce(); err != nil {
				return err
			}
		case len(a.length) < maxLength:
			a.length = append(a.length, c)
		}
		if a.bytes > most.bytes {
			return fmt.Errorf("an answer of Redis has more than %d bytes", most.bytes)
		}
		if a.values > most.values {
			return fmt.Errorf("an answer of Redis has more than %d values", most.values)
		}
	}
	return nil
}

// announce adds what a line announces that has ended.
func (a *announced) announce() error {
	if strings.IndexByte(longKinds, a.kind) < 0 {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(string(a.length), "\r"))
	if err != nil || len(a.length) == maxLength {
		return errNotRESP
	}
	switch n = max(n, -1); a.kind { // -1 is no value
	case '*', '~', '>':
		a.values += n + 1
	case '%':
		a.values += 2*n + 2
	case '|':
		a.values += 2*n + 2 + asideValues
	default:
		if n >= 0 {
			a.bytes += n
			a.skip = n + len("\r\n")
		}
	}
	return nil
}

// bounded is a connection that is cut by an answer beyond the bounds. Only what is answered to one
// question counts together. Sentinels also send notifications, while a question may be sent.
type bounded struct {
	net.Conn
	bounds replyBounds

	mu       sync.Mutex         // guards what follows
	answered announced          // since the last question
	held     memory.Reservation // for it
	asked    int                // of it, in bytes
	failed   error
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

// take adds some bytes to the answer, and asks for the memory that go-redis takes for them.
func (b *bounded) take(p []byte) error {
	err := b.answered.read(p, &b.bounds)
	if err != nil {
		return err
	}
	need := b.answered.bytes*replyByteBytes + b.answered.values*replyValueBytes
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
	b.answered.bytes, b.answered.values = 0, 0
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
