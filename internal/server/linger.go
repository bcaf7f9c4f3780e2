package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// lingering lets clients read the answer to a request that they are still sending: to close a
// connection with bytes unread resets it, and with it goes what the client has not read. So the
// gateway finishes its own way, then reads and drops what comes until the client closes too.
//
// All of it is bounded, for one client and for all of them together.
type lingering struct {
	lingerLimits
	conns atomic.Int64 // that linger now

	mu     sync.Mutex
	second time.Time // the start of the second that taken counts
	taken  int       // bytes that were dropped in it
}

// lingerLimits bound what is done for clients that go on sending.
type lingerLimits struct {
	// Time is how long a client may go on, Silence how long it may pause, Bytes how much is
	// dropped.
	Time, Silence time.Duration
	Bytes         int
	// Last is how long a client beyond that has to read the answer, while nothing is read from it.
	Last time.Duration
	// Conns is how many clients may linger at a time. The connections of others close at once.
	Conns int64
	// Pace is how many bytes of all clients together are dropped in a second. The rest waits in the
	// network.
	Pace int
}

// defaultLinger returns the limits of a server with so many connections. The times are nginx's.
func defaultLinger(maxConns int) lingerLimits {
	return lingerLimits{
		Time: 30 * time.Second, Silence: 5 * time.Second, Bytes: 64 << 20, Last: 500 * time.Millisecond,
		Conns: int64(max(maxConns/4, 1)), Pace: 64 << 20,
	}
}

// await lingers with a client until it has closed its end, or a limit is reached.
func (l *lingering) await(c *conn) {
	if l.conns.Add(1) > l.Conns {
		l.conns.Add(-1)
		return
	}
	defer l.conns.Add(-1)
	if !c.rest() || closeWrite(c.socket.Conn) != nil {
		return
	}
	c.in.giveBack()
	until := time.Now().Add(l.Time)
	wait := waiter(c.socket.Conn)
	for left := l.Bytes; left > 0; {
		now := time.Now()
		if !now.Before(until) {
			break
		}
		by := now.Add(l.Silence)
		if until.Before(by) {
			by = until
		}
		c.socket.setReadDeadline(by)
		if wait != nil && wait() != nil {
			return
		}
		n := l.share(min(left, copyBuffer), time.Now())
		if n == 0 {
			if c.state.isEnded() {
				return
			}
			time.Sleep(pacePause)
			continue
		}
		dropped, err := c.drop(n)
		l.giveBack(n - dropped)
		if left -= dropped; err != nil {
			return
		}
	}
	time.Sleep(l.Last)
}

// pacePause is how long a client waits for its turn if all together send too much.
const pacePause = 10 * time.Millisecond

// drop reads at most n bytes and discards them.
func (c *conn) drop(n int) (int, error) {
	buf := c.server.buffers.copy()
	defer c.server.buffers.putCopy(buf)
	return c.socket.Read(buf[:n])
}

// giveBack returns a part of a share that was not needed.
func (l *lingering) giveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = max(0, l.taken-n)
}

// share returns how many of n bytes may be dropped now.
func (l *lingering) share(n int, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.taken = now, 0
	}
	n = min(n, l.Pace-l.taken)
	l.taken += n
	return n
}
