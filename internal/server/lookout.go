package server

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/secure"
)

// A lookout finds out which clients of HTTP/1.1 have left while their requests are served. It asks the system about many
// sockets at once, and only about those whose request has lasted for a while: most are answered before, and cost nothing.
// By HTTP/2 the client says so itself.
type lookout struct {
	every     time.Duration
	isRunning atomic.Bool

	mu    sync.Mutex
	conns []*conn // that are not parked

	looking sync.Mutex // guards what follows; there is one call of tick at a time, but for the moment at which one ends
	idle    int        // looks that have found no request
	aged    []*conn
	turns   []uint32
	looks   []peek.Look
	polls   peek.Polls
}

// defaultLook is how often the lookout looks. A request is asked about if it was in progress at two looks.
const defaultLook = 25 * time.Millisecond

const (
	// idleLooks is how often the lookout finds that no connection has had a request before it ends.
	idleLooks = 40
	// mostOfTime bounds the part of its time that the lookout is at work: one in so many.
	mostOfTime = 50
)

// watched is what a lookout knows of a connection.
type watched struct {
	turns atomic.Uint32 // how often a request began or ended: it is odd while there is one
	seen  uint32        // turns at the last look
	at    int           // one more than its place among the connections; 0 is none
}

// add watches a connection.
func (l *lookout) add(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	c.watched.at = len(l.conns)
}

// remove ends that. It may be called again.
func (l *lookout) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.watched.at == 0 {
		return
	}
	last := len(l.conns) - 1
	l.conns[c.watched.at-1] = l.conns[last]
	l.conns[last].watched.at = c.watched.at
	l.conns[last] = nil
	l.conns = l.conns[:last]
	c.watched.at = 0
}

// begin notes that a connection has a request.
func (l *lookout) begin(c *conn) {
	if c.watched.turns.Add(1); !l.isRunning.Load() && l.isRunning.CompareAndSwap(false, true) {
		time.AfterFunc(l.every, l.tick)
	}
}

// tick looks, and has itself called again until no connection has had a request for a while.
func (l *lookout) tick() {
	l.looking.Lock()
	defer l.looking.Unlock()
	began := time.Now()
	if l.idle++; l.look() {
		l.idle = 0
	}
	if l.idle > idleLooks {
		l.isRunning.Store(false)
		if !l.look() || !l.isRunning.CompareAndSwap(false, true) { // a request may have begun right before
			return
		}
	}
	time.AfterFunc(l.every+mostOfTime*min(time.Since(began), time.Second), l.tick)
}

// look looks at the clients that have waited since the last look, and reports whether any connection has, or had, a request.
func (l *lookout) look() (isBusy bool) {
	l.mu.Lock()
	for _, c := range l.conns {
		turns := c.watched.turns.Load()
		isServed := turns%2 == 1
		if isServed && turns == c.watched.seen {
			l.aged, l.turns = append(l.aged, c), append(l.turns, turns)
		}
		isBusy = isBusy || isServed || turns != c.watched.seen
		c.watched.seen = turns
	}
	l.mu.Unlock()
	l.lookAt()
	clear(l.aged)
	clear(l.looks)
	l.aged, l.turns, l.looks = l.aged[:0], l.turns[:0], l.looks[:0]
	return isBusy
}

// lookAt looks at those clients, and notes which have left.
func (l *lookout) lookAt() {
	known := 0
	for i, c := range l.aged {
		under, isOver := underlying(c.socket.Conn)
		socket := rawOf(under)
		if socket == nil {
			continue
		}
		l.aged[known], l.turns[known] = c, l.turns[i]
		known++
		l.looks = append(l.looks, peek.Look{Socket: socket, ServesHalf: c.at.ServesHalf(), Reads: isOver})
	}
	l.polls = peek.Looks(l.looks, l.polls)
	for i := range l.looks {
		c := l.aged[i]
		hasLeft := l.looks[i].HasEnded
		if !hasLeft && l.looks[i].IsReadable && !l.looks[i].ServesHalf {
			hasLeft = c.hasSaidGoodbye(l.turns[i])
		}
		if hasLeft && c.watched.turns.Load() == l.turns[i] {
			c.client.Leave()
		}
	}
}

// hasSaidGoodbye reports whether the client has ended TLS in order. It looks only while the request waits for something else
// than the client's bytes: no other goroutine reads them then.
func (c *conn) hasSaidGoodbye(turns uint32) (said bool) {
	over, ok := c.socket.Conn.(*secure.Conn)
	if !ok || !peek.IsAble {
		return false
	}
	socket := rawOf(over.NetConn())
	c.client.IsWaiting(func() {
		if c.watched.turns.Load() == turns && !c.exchange.upload.isUnderWay() {
			said = over.HasEnded(func(p []byte) (int, bool, error) { return readArrived(socket, p) })
		}
	})
	return said
}

// readArrived reads what has arrived on a socket.
func readArrived(socket syscall.RawConn, p []byte) (n int, waits bool, err error) {
	closed := socket.Control(func(fd uintptr) { n, waits, err = peek.Read(fd, p) })
	return n, waits, errors.Join(err, closed)
}
