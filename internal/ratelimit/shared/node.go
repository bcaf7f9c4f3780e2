package shared

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/circuit"
)

const (
	// queueLength is how many calls may wait for a server, maxBatch how many of them one round trip takes.
	queueLength = 4096
	maxBatch    = 128
	// idleFor is how long a worker waits for work before it ends.
	idleFor = 10 * time.Second
	// openFor is how long a server that failed is left alone until one request tries it.
	openFor = 200 * time.Millisecond
	// A server has failed that failed so often in a row, or in half of so many calls, of those in recentFor.
	failuresInRow, enoughCalls = 5, 20
	recentFor                  = 10 * time.Second
)

var (
	errQueueFull = errors.New("too many decisions wait for Redis")
	errOpen      = errors.New("the store Redis is left alone for a moment, because it failed")
)

// node is one server. Its workers, each with a connection, send what waits for it in pipelines: the more there is to
// do, the more a round trip carries.
type node struct {
	client *redis.Client
	queue  chan *call
	// changed is called, one call at a time, when the server becomes available or unavailable for a cause.
	changed func(available bool, cause error)
	mu      sync.Mutex
	breaker circuit.Breaker // guarded by mu
	// redirect runs a call on another server that a cluster moved its bucket to; nil if there is no
	// cluster.
	redirect func(c *call) ([]int64, error)

	max, workers, idle atomic.Int32
	closed             <-chan struct{}
}

func (s *Store) newNode(client *redis.Client) *node {
	n := &node{client: client, queue: make(chan *call, queueLength), closed: s.closed}
	n.max.Store(int32(s.options.Connections))
	address := client.Options().Addr
	if s.options.Mode == Sentinel {
		address = s.options.MasterName
	}
	n.breaker = circuit.New(circuit.Policy{
		Failures: failuresInRow, Calls: enoughCalls, Window: recentFor, Open: openFor, MaxOpen: openFor,
	})
	n.changed = func(available bool, cause error) { s.changed(address, available, cause) }
	return n
}

// changed notes that a server has become available or unavailable.
func (s *Store) changed(address string, available bool, cause error) {
	if available {
		s.metrics.SharedLimitStore(int(s.unavailable.Add(-1)))
		s.log.Info("shared limits: Redis is available again", slog.String("address", address))
		return
	}
	s.metrics.SharedLimitStore(int(s.unavailable.Add(1)))
	s.log.Error("shared limits: Redis is unavailable", slog.String("address", address), slog.Any("error", cause))
}

// isOpen reports whether the server is left alone now.
func (n *node) isOpen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.breaker.IsOpen(time.Now())
}

// admit returns an error if the server may not be asked now. Otherwise done must be called.
func (n *node) admit() (probe int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.breaker.Admit(time.Now())
}

// done notes the result of a call that was admitted.
func (n *node) done(probe int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wasClosed := n.breaker.State() == circuit.Closed
	if err == nil {
		n.breaker.Succeeded(time.Now())
	} else {
		n.breaker.Failed(time.Now())
	}
	n.breaker.EndProbe(probe)
	if isClosed := n.breaker.State() == circuit.Closed; isClosed != wasClosed {
		n.changed(isClosed, err)
	}
}

// call is a script that a server is to run, and what it answered.
type call struct {
	script *script
	keys   []string
	lines  []string
	// ticket waits for the answer; nil if nothing does.
	ticket *ticket

	reply []int64
	err   error
	ready atomic.Bool // reply and err are there
}

// args are the arguments of the command that runs c; whole sends the script's text, which the server may not know yet.
func (c *call) args(whole bool) []any {
	args := make([]any, 0, 3+len(c.keys)+len(c.lines))
	if whole {
		args = append(args, "eval", c.script.text)
	} else {
		args = append(args, "evalsha", c.script.sha)
	}
	args = append(args, len(c.keys))
	for _, k := range c.keys {
		args = append(args, k)
	}
	for _, l := range c.lines {
		args = append(args, l)
	}
	return args
}

// finish keeps what the server answered.
func (c *call) finish(reply []int64, err error) {
	c.reply, c.err = reply, err
	c.ready.Store(true)
	if c.ticket != nil {
		c.ticket.finished()
	}
}

// submit has a call sent. It never blocks.
func (n *node) submit(c *call) error {
	select {
	case n.queue <- c:
	default:
		return errQueueFull
	}
	if n.idle.Load() == 0 {
		n.hire()
	}
	return nil
}

// hire starts a worker, if there may be another one.
func (n *node) hire() {
	for {
		workers := n.workers.Load()
		if workers >= n.max.Load() {
			return
		}
		if n.workers.CompareAndSwap(workers, workers+1) {
			go n.work()
			return
		}
	}
}

func (n *node) work() {
	timer := time.NewTimer(idleFor)
	defer timer.Stop()
	batch := make([]*call, 0, maxBatch)
	for {
		var first *call
		select {
		case first = <-n.queue:
		default:
			timer.Reset(idleFor)
			n.idle.Add(1)
			select {
			case first = <-n.queue:
				n.idle.Add(-1)
			case <-timer.C:
				n.idle.Add(-1)
				n.workers.Add(-1)
				// What was submitted while this worker still counted as idle has no other worker.
				if len(n.queue) > 0 {
					n.hire()
				}
				return
			case <-n.closed:
				return
			}
		}
		batch = n.collect(append(batch[:0], first))
		n.send(batch)
		clear(batch)
	}
}

// collect takes what else waits, and leaves out what is no longer waited for: it has been decided
// elsewhere.
func (n *node) collect(batch []*call) []*call {
	if batch[0].abandoned() {
		batch = batch[:0]
	}
	for len(batch) < maxBatch {
		select {
		case c := <-n.queue:
			if !c.abandoned() {
				batch = append(batch, c)
			}
		default:
			return batch
		}
	}
	return batch
}

func (c *call) abandoned() bool { return c.ticket != nil && c.ticket.abandoned.Load() }

// send runs a batch in one round trip, and in one more what the server did not know the script of.
func (n *node) send(batch []*call) {
	unknown := n.exchange(batch, false)
	if len(unknown) > 0 {
		n.exchange(unknown, true)
	}
}

// exchange finishes the calls whose answers are final, and returns those whose script is unknown.
func (n *node) exchange(batch []*call, whole bool) (unknown []*call) {
	if len(batch) == 0 {
		return nil
	}
	// Calls are not cancelled: the connection has its own deadlines, and each request leaves by
	// itself.
	ctx := context.Background()
	pipe := n.client.Pipeline()
	commands := make([]*redis.IntSliceCmd, len(batch))
	for i, c := range batch {
		commands[i] = redis.NewIntSliceCmd(ctx, c.args(whole)...)
		_ = pipe.Process(ctx, commands[i]) // it only queues
	}
	_, failed := pipe.Exec(ctx)
	for i, c := range batch {
		reply, err := commands[i].Result()
		if err == nil && reply == nil {
			err = failed // without a connection commands have no error of their own
		}
		switch {
		case err == nil:
			c.finish(reply, nil)
		case !whole && redis.HasErrorPrefix(err, "NOSCRIPT"):
			unknown = append(unknown, c)
		case n.redirect != nil && redirected(err):
			c.finish(n.redirect(c))
		default:
			c.finish(nil, err)
		}
	}
	return unknown
}

func redirected(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "MOVED ") || strings.HasPrefix(text, "ASK ")
}
