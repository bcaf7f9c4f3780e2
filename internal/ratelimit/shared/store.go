package shared

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Store decides on shared limits. It is safe for concurrent use.
type Store struct {
	options Options
	metrics Metrics
	log     *slog.Logger
	clock   func() int64

	known  *buckets
	single *node    // nil with a cluster
	many   *cluster // nil without

	unavailable atomic.Int32
	ended       chan struct{} // no request follows
	closed      chan struct{} // nor does anything else
	end         sync.Once
	swept       sync.WaitGroup
}

// Open returns a Store. It does not wait for Redis: until it answers, Take fails.
func Open(o Options) (*Store, error) {
	if len(o.Addresses) == 0 {
		return nil, errors.New("shared limits: there is no address of Redis")
	}
	if o.stall == 0 {
		o.stall = stall
	}
	start := time.Now()
	s := &Store{
		options: o, metrics: o.Metrics, log: o.Log, ended: make(chan struct{}), closed: make(chan struct{}),
		clock: func() int64 { return int64(time.Since(start)) },
	}
	if s.metrics == nil {
		s.metrics = noMetrics{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	redis.SetLogger(quiet{s.log})
	s.known = newBuckets(maxKnown, s.giveBack)
	switch o.Mode {
	case Single, Sentinel:
		s.single = s.newNode(o.client())
	case Cluster:
		s.many = s.newCluster()
	default:
		return nil, fmt.Errorf("shared limits: there is no mode '%s'", o.Mode)
	}
	s.swept.Go(s.sweep)
	return s, nil
}

// quiet takes what go-redis logs on its own. What matters of it the Store says itself, once.
type quiet struct{ log *slog.Logger }

// Printf implements the interface of go-redis' loggers.
func (q quiet) Printf(ctx context.Context, format string, v ...any) {
	if q.log.Enabled(ctx, slog.LevelDebug) {
		q.log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, v...))
	}
}

// Close gives leases back, as far as Redis answers, and ends all connections. No Take may run or follow.
func (s *Store) Close() error {
	var err error
	s.end.Do(func() {
		close(s.ended)
		s.swept.Wait()
		s.giveAllBack()
		close(s.closed)
		if s.many != nil {
			err = s.many.client.Close()
		} else {
			err = s.single.client.Close()
		}
	})
	return err
}

// giveAllBack waits until the leases are given back, for as long as a connection may take for it.
func (s *Store) giveAllBack() {
	var left []*call
	s.known.sweep(s.clock()+int64(leaseFor), func(k Key, t taken, interval time.Duration) {
		c := &call{}
		c.giveBack(k.name(s.options.Prefix), t, interval)
		left = append(left, c)
	})
	if len(left) == 0 {
		return
	}
	t := newTicket(len(left))
	for i, c := range left {
		waited := &t.calls[i]
		waited.script, waited.keys, waited.lines, waited.ticket = c.script, c.keys, c.lines, t
		s.post(waited)
	}
	t.wait(stall)
}

// sweep gives unused leases back.
func (s *Store) sweep() {
	ticker := time.NewTicker(leaseFor / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.known.sweep(s.clock(), s.giveBack)
		case <-s.ended:
			return
		}
	}
}

// giveBack sends tokens back to their bucket, if Redis takes calls now; if not, they come back by themselves in time.
func (s *Store) giveBack(k Key, t taken, interval time.Duration) {
	c := &call{}
	c.giveBack(k.name(s.options.Prefix), t, interval)
	s.post(c)
}

// post sends a call to the server that has its bucket.
func (s *Store) post(c *call) {
	n, err := s.node(c.keys[0])
	if err == nil && n.isOpen() {
		err = errOpen
	}
	if err == nil {
		err = n.submit(c)
	}
	if err != nil {
		c.finish(nil, err)
	}
}

// node is the server that has a bucket.
func (s *Store) node(name string) (*node, error) {
	if s.many != nil {
		return s.many.node(name)
	}
	return s.single, nil
}
