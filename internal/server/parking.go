package server

import (
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/secure"
)

// defaultPark is how long a connection is silent before its goroutine ends. Most clients that send requests at all send
// them sooner, and it takes a few microseconds to begin a goroutine again.
const defaultPark = 5 * time.Second

// A sequel says what becomes of a connection when its goroutine ends.
type sequel uint8

const (
	ends   sequel = iota
	parks         // it waits for the client without a goroutine and without a buffer
	goesOn        // the rest of the answer has a goroutine of its own
)

// A parking is what a connection knows of a long silence before a request. Many clients keep connections for hours that
// they do not use.
type parking struct {
	wait     peek.Wait
	by       time.Time // when the silence is too long; zero before it is known to be one
	isBarred bool      // the system does not watch the socket
}

// watch has came called when the client sends something or leaves, or, late, when the time is over. It returns false if
// the system does not watch the socket.
func (s *Server) watch(w *peek.Wait, socket syscall.RawConn, by time.Time, came func(isLate bool)) bool {
	if socket == nil {
		return false
	}
	s.watching.Do(func() { s.watched.Store(peek.NewSet(s.parkAfter)) })
	return s.watched.Load().Add(w, socket, by, came)
}

// forget ends a wait; false if there is none any more.
func (s *Server) forget(w *peek.Wait) bool { return s.watched.Load().Remove(w) }

// giveBackFor is for how many connections that were parked memory is given back to the system, and giveBackPause how
// long it is not done again.
const (
	giveBackFor   = 500
	giveBackPause = time.Minute
)

// A givingBack gives memory back to the system after many connections were parked: their goroutines had stacks, which
// Go's runtime keeps for others otherwise.
type givingBack struct {
	parked     atomic.Int64 // connections since
	isUnderWay atomic.Bool
}

// note notes a connection that was parked. Memory is given back a while after the first ones.
func (g *givingBack) note(while time.Duration) {
	if g.parked.Add(1) >= giveBackFor && g.isUnderWay.CompareAndSwap(false, true) {
		time.AfterFunc(while, g.giveBack)
	}
}

func (g *givingBack) giveBack() {
	g.parked.Store(0)
	debug.FreeOSMemory()
	time.AfterFunc(giveBackPause, func() {
		if g.parked.Load() >= giveBackFor {
			g.giveBack()
			return
		}
		g.isUnderWay.Store(false)
	})
}

// armIdle sets the deadline of the wait for the next request, and reports whether the connection may be parked then.
func (c *conn) armIdle() (mayPark bool) {
	most, parkAfter := c.server.settings.Load().IdleTimeout, c.server.parkAfter
	switch {
	case c.parking.isBarred || most <= 2*parkAfter:
		c.socket.armRead(most)
		return false
	case c.parking.by.IsZero():
		c.socket.armRead(parkAfter)
	default: // it was parked, and what came is not enough for a request
		by := time.Now().Add(parkAfter)
		if c.parking.by.Before(by) {
			by = c.parking.by
		}
		c.socket.setReadDeadline(by)
	}
	return true
}

// park has the connection parked because nothing has come yet, unless it is silent for too long.
func (c *conn) park() {
	now := time.Now()
	if c.parking.by.IsZero() {
		c.parking.by = now.Add(c.server.settings.Load().IdleTimeout - c.server.parkAfter)
	}
	if now.Before(c.parking.by) {
		c.sequel = parks
	}
}

// leave ends the goroutine of the connection.
func (c *conn) leave() {
	then := c.sequel
	c.sequel = ends
	switch then {
	case ends:
		c.end()
	case goesOn:
		c.credit.keep(connectionBytes + lastingBytes)
		go c.goOn()
	case parks:
		c.in.giveBack()
		c.credit.keep(connectionBytes)
		c.exchange = exchange{} // the memory of its head is given back too
		c.server.disconnects.remove(c)
		if !c.server.watch(&c.parking.wait, c.silentSocket(), c.parking.by, func(isLate bool) { go c.resume(isLate) }) {
			c.parking.isBarred = true
			go c.resume(false)
			return
		}
		c.server.givingBack.note(c.server.parkAfter)
		if c.state.isEnded() { // by a shutdown that did not find it parked
			c.unpark()
		}
	}
}

// resume goes on with a connection that was parked: serves what has come, or ends it.
func (c *conn) resume(isLate bool) {
	defer c.leave()
	if !isLate && c.state.wake() {
		c.server.disconnects.add(c)
		c.serveRequests()
	}
}

// unpark ends a connection whose socket is closed, if it is parked.
func (c *conn) unpark() {
	if c.server.forget(&c.parking.wait) {
		go c.resume(true)
	}
}

// silentSocket returns the socket that has something to read as soon as the connection has; nil if there is none, such
// as behind TLS that has taken something off it already.
func (c *conn) silentSocket() syscall.RawConn {
	if over, ok := c.socket.Conn.(*secure.Conn); ok {
		if hasMore, err := over.Buffered(); hasMore || err != nil {
			return nil
		}
	}
	under, _ := underlying(c.socket.Conn)
	return rawOf(under)
}
