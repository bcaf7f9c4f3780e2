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

// A disconnectPoller finds out which clients of HTTP/1.1 have left while their requests are served. It asks the system
// about many sockets at once, and only about those whose request has lasted for a while: most are answered before, and
// cost nothing. By HTTP/2 the client says so itself.
type disconnectPoller struct {
	every     time.Duration
	isRunning atomic.Bool

	mu    sync.Mutex
	conns []*conn // that are not parked

	looking sync.Mutex // guards what follows; there is one call of tick at a time, but for the moment at which one ends
	idle    int        // looks that have found no request
	aged    []*conn
	turns   []uint32
	looks   []peek.Probe
	polls   peek.Polls
}

// defaultLook is how often the poller looks. A request is asked about if it was in progress at two looks.
const defaultLook = 25 * time.Millisecond

const (
	// idleLooks is how often the poller finds that no connection has had a request before it ends.
	idleLooks = 40
	// mostOfTime bounds the part of its time that the poller is at work: one in so many.
	mostOfTime = 50
)

// polledConn holds what the poller knows of a connection.
type polledConn struct {
	turns atomic.Uint32 // how often a request began or ended: it is odd while there is one
	seen  uint32        // turns at the last look
	at    int           // one more than its place among the connections; 0 is none
}

// add watches a connection.
func (p *disconnectPoller) add(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	c.watched.at = len(p.conns)
}

// remove ends that. It may be called again.
func (p *disconnectPoller) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.watched.at == 0 {
		return
	}
	last := len(p.conns) - 1
	p.conns[c.watched.at-1] = p.conns[last]
	p.conns[last].watched.at = c.watched.at
	p.conns[last] = nil
	p.conns = p.conns[:last]
	c.watched.at = 0
}

// begin notes that a connection has a request.
func (p *disconnectPoller) begin(c *conn) {
	if c.watched.turns.Add(1); !p.isRunning.Load() && p.isRunning.CompareAndSwap(false, true) {
		time.AfterFunc(p.every, p.tick)
	}
}

// tick looks, and has itself called again until no connection has had a request for a while.
func (p *disconnectPoller) tick() {
	p.looking.Lock()
	defer p.looking.Unlock()
	began := time.Now()
	if p.idle++; p.look() {
		p.idle = 0
	}
	if p.idle > idleLooks {
		p.isRunning.Store(false)
		if !p.look() || !p.isRunning.CompareAndSwap(false, true) { // a request may have begun right before
			return
		}
	}
	time.AfterFunc(p.every+mostOfTime*min(time.Since(began), time.Second), p.tick)
}

// look looks at the clients that have waited since the last look, and reports whether any connection has, or had, a
// request.
func (p *disconnectPoller) look() (isBusy bool) {
	p.mu.Lock()
	for _, c := range p.conns {
		turns := c.watched.turns.Load()
		isServed := turns%2 == 1
		if isServed && turns == c.watched.seen {
			p.aged, p.turns = append(p.aged, c), append(p.turns, turns)
		}
		isBusy = isBusy || isServed || turns != c.watched.seen
		c.watched.seen = turns
	}
	p.mu.Unlock()
	p.lookAt()
	clear(p.aged)
	clear(p.looks)
	p.aged, p.turns, p.looks = p.aged[:0], p.turns[:0], p.looks[:0]
	return isBusy
}

// lookAt looks at those clients, and notes which have left.
func (p *disconnectPoller) lookAt() {
	known := 0
	for i, c := range p.aged {
		under, isOver := underlying(c.socket.Conn)
		socket := rawOf(under)
		if socket == nil {
			continue
		}
		p.aged[known], p.turns[known] = c, p.turns[i]
		known++
		p.looks = append(p.looks, peek.Probe{Socket: socket, ServesHalf: c.at.ServesHalf(), Reads: isOver})
	}
	p.polls = peek.ProbeAll(p.looks, p.polls)
	for i := range p.looks {
		c := p.aged[i]
		hasLeft := p.looks[i].HasEnded
		if !hasLeft && p.looks[i].IsReadable && !p.looks[i].ServesHalf {
			hasLeft = c.hasSaidGoodbye(p.turns[i])
		}
		if hasLeft && c.watched.turns.Load() == p.turns[i] {
			c.client.Leave()
		}
	}
}

// hasSaidGoodbye reports whether the client has ended TLS in order. It looks only while the request waits for something
// else than the client's bytes: no other goroutine reads them then.
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
