package upstream

import (
	"io"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// A link makes round trips to an endpoint on one connection, whatever its protocol. A link of
// HTTP/1.1 makes one at a time.
type link interface {
	// begin is called once the pool counts the connection.
	begin(cn *connection)
	// roundTrip sends the request and reads the answer into resp, as [Client.Do] says. It gives the
	// slot back to the pool when nothing of the answer is to come any more: a stream or a tunnel keeps
	// it. The error is an *Error.
	roundTrip(s slot, req *Request, resp *message.Response) error
	// isStale reports whether it is known of a link that makes no round trip that no request may be
	// sent on it. A link may find that out only when it is to send one, too.
	isStale() bool
	// Close ends the link at once.
	io.Closer
}

// slot is the use of a connection for one round trip.
type slot struct {
	conn     *connection
	isFresh  bool // the connection was made for it
	now      time.Time
	deadline time.Time // of the round trip; zero if there is none
}

// connection is a connection to an endpoint as the pool counts it. Link, endpoint, generation and
// isOwn do not change; the pool's lock guards the rest.
type connection struct {
	link       link
	endpoint   *endpoint // at its other end
	generation uint64    // connections of older generations are not used again
	isOwn      bool      // it was made for a request that needs HTTP/1.1, and says nothing of the endpoint's protocol

	slots   int       // round trips that the link can make at a time, at least one
	taken   int       // slots that are in use
	isSpent bool      // no further slot is granted: the connection is closed when none is in use
	freed   time.Time // when the last round trip was over
	wasIdle bool      // it is closed because it was not used, so that nothing may have come on it
}

// isFull reports whether each slot is in use.
func (cn *connection) isFull() bool { return cn.taken >= cn.slots }

// connections are the connections to an endpoint.
type connections struct {
	// free are those with a slot that is not in use: first the idle ones, of which no slot is, and of
	// them the one used last is last.
	free []*connection
	idle int
	open int // all of them, with those being made
	// making counts those being made for any request, and expected is how many slots the last one of them had; zero
	// before there was one.
	making, expected int
	stop             func() // ends the health checks of the endpoint
}

// unknownSlots are expected of the first connection to an endpoint, so that no second one is made before it shows how
// many round trips it carries.
const unknownSlots = 1 << 30

// others returns how many round trips a connection that is being made is expected to carry beside the one that it is
// made for.
func (c *connections) others() int {
	if c.expected == 0 {
		return unknownSlots
	}
	return c.expected - 1
}

// remove takes a connection that is not idle out of those that are free, if it is one of them.
func (c *connections) remove(cn *connection) {
	if i := slices.Index(c.free[c.idle:], cn); i >= 0 {
		c.free = slices.Delete(c.free, c.idle+i, c.idle+i+1)
	}
}
