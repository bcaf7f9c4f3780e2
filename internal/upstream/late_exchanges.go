package upstream

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// A backend may carry a request out after its answer was given up. If that matters, the exchange keeps its connection
// and is watched until it ends.

// LateTimeout is how long an exchange is watched after its answer was too slow.
const LateTimeout = time.Minute

// lateTimeout is LateTimeout but in tests.
var lateTimeout = LateTimeout

// maxLate bounds how many exchanges with a backend are watched at a time: each keeps a connection, or a stream of one.
const maxLate = 64

// lateExchanges counts the exchanges that are watched.
type lateExchanges struct{ count atomic.Int32 }

// take takes one of the places, and reports whether there was one.
func (l *lateExchanges) take() bool {
	if l.count.Add(1) <= maxLate {
		return true
	}
	l.count.Add(-1)
	return false
}

// endedExchange is the end of exchanges that are not watched, because the backend has nothing to carry out any more.
var endedExchange = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// watches reports whether a failed exchange is watched, and takes a place for it. isPending says that the whole request
// was sent, and no head of an answer has come.
func (t *transport) watches(req *Request, err error, isPending bool) bool {
	failure, is := errors.AsType[*Error](err)
	switch {
	case !is || !req.RunsOn || failure.Kind != TooSlow:
		return false
	case !isPending:
		failure.Ended = endedExchange
		return false
	}
	if t.late.take() {
		return true
	}
	t.unended.Add(1)
	return false
}

// watch waits for the end of an exchange that failed: wait returns then, or when LateTimeout has passed.
func (t *transport) watch(err error, wait func(by time.Time), end func()) {
	ended := make(chan struct{})
	if failure, is := errors.AsType[*Error](err); is {
		failure.Ended = ended
	}
	go func() {
		defer close(ended)
		by := time.Now().Add(lateTimeout)
		if wait(by); !time.Now().Before(by) {
			t.unended.Add(1)
		}
		end()
		t.late.count.Add(-1)
	}()
}

// watch keeps a connection until the answer that was too slow has come, or its end.
func (c *conn) watch(s slot, err error, o balance.Outcome) {
	c.transport.pool.answered(s.conn, o)
	c.transport.watch(err, func(by time.Time) {
		if c.Conn.SetReadDeadline(by) == nil {
			_, _ = readHead(c, c.br) // whatever it is, the backend has finished, or is no longer watched
		}
	}, func() { c.end(false, balance.Inconclusive, time.Now()) })
}

// watch keeps a stream until the answer that was too slow has come, or its end.
func (x *stream) watch(err error, o balance.Outcome) {
	t := x.session.transport
	t.pool.answered(x.held, o)
	t.watch(err, func(by time.Time) {
		x.on.BoundHead(by)
		_, _ = x.on.Head()
	}, func() { x.release(false, balance.Inconclusive) })
}
