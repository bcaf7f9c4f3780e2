package server

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A crew serves one piece of work after the other on goroutines that it keeps. A new goroutine has a small stack, which grows
// under a request, and is copied for that: this costs more than to hand the next request to a goroutine that has served one.
// The zero value keeps them until its end.
type crew struct {
	dismissEvery time.Duration // those that are not needed; 0 is never
	most         int           // that are kept idle; 0 is mostIdle

	mu        sync.Mutex  // guards what follows
	idle      []chan work // of goroutines without work; the last one has been idle for the shortest time
	spare     int         // how many have been idle all the time since some were dismissed
	isWatched bool        // some will be dismissed
	isOver    bool
}

// Crews serve the streams of HTTP/2. Each connection has one of them, so that its streams share no lock with all others.
type crews struct {
	all  []crew
	last atomic.Uint32
}

// newCrews returns as many crews as there are processors, which keep mostIdle goroutines in all.
func newCrews() *crews {
	c := &crews{all: make([]crew, min(runtime.GOMAXPROCS(0), mostIdle/4))}
	for i := range c.all {
		c.all[i].dismissEvery, c.all[i].most = defaultDismiss, mostIdle/len(c.all)
	}
	return c
}

// next returns the crew of the next connection.
func (c *crews) next() *crew { return &c.all[int(c.last.Add(1))%len(c.all)] }

// end ends all crews.
func (c *crews) end() {
	for i := range c.all {
		c.all[i].end()
	}
}

// A work is served once.
type work interface{ serve() }

const (
	// mostIdle is how many goroutines a crew keeps that are idle.
	mostIdle = 64
	// defaultDismiss is how long those stay at least that are not needed.
	defaultDismiss = 5 * time.Second
)

// serve has a goroutine serve a piece of work.
func (c *crew) serve(w work) {
	if next := c.take(); next != nil {
		next <- w
		return
	}
	go c.run(w)
}

// take takes a goroutine that is idle; nil if there is none.
func (c *crew) take() chan work {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	next := c.idle[n-1]
	c.idle = c.idle[:n-1]
	c.spare = min(c.spare, n-1)
	return next
}

// run serves a piece of work, and those that come after it until it is dismissed.
func (c *crew) run(w work) {
	for next := make(chan work, 1); w != nil; w = <-next {
		if w.serve(); !c.rest(next) {
			return
		}
	}
}

// rest makes a goroutine idle. It returns false if enough of them are.
func (c *crew) rest(next chan work) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= cmp.Or(c.most, mostIdle) || c.isOver {
		return false
	}
	c.idle = append(c.idle, next)
	if !c.isWatched {
		c.watch()
	}
	return true
}

// watch has those dismissed that will not have been needed. The lock is held.
func (c *crew) watch() {
	if c.isWatched = c.dismissEvery > 0; c.isWatched {
		time.AfterFunc(c.dismissEvery, c.dismissSpare)
	}
}

// dismissSpare dismisses those that were idle all the time since it was called last.
func (c *crew) dismissSpare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismiss(c.spare)
	c.isWatched = false
	if c.spare = len(c.idle); c.spare > 0 {
		c.watch()
	}
}

// dismiss ends n goroutines, those that have been idle longest. The lock is held.
func (c *crew) dismiss(n int) {
	for _, next := range c.idle[:n] {
		close(next)
	}
	c.idle = slices.Delete(c.idle, 0, n)
}

// end dismisses all, and each that has work when that is done.
func (c *crew) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOver, c.spare = true, 0
	c.dismiss(len(c.idle))
}
