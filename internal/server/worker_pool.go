package server

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A workerPool serves tasks on goroutines that it keeps. The stack of a new goroutine is small and is copied as it
// grows under a request. That costs more than to hand the next request to a goroutine that has served one. The zero
// value keeps idle goroutines until end is called.
type workerPool struct {
	dismissEvery time.Duration // how often goroutines that are not needed are dismissed; 0 is never
	most         int           // how many are kept idle; 0 is mostIdle

	mu        sync.Mutex  // guards what follows
	idle      []chan task // of goroutines without work; the last one has been idle for the shortest time
	spare     int         // how many have been idle all the time since some were dismissed
	isWatched bool        // some will be dismissed
	isOver    bool
}

// workerPools serve the streams of HTTP/2. Each connection uses one of them, so that its streams do not share a lock
// with all others.
type workerPools struct {
	all  []workerPool
	last atomic.Uint32
}

// newWorkerPools returns as many pools as there are processors, which keep mostIdle goroutines in all.
func newWorkerPools() *workerPools {
	c := &workerPools{all: make([]workerPool, min(runtime.GOMAXPROCS(0), mostIdle/4))}
	for i := range c.all {
		c.all[i].dismissEvery, c.all[i].most = defaultDismiss, mostIdle/len(c.all)
	}
	return c
}

// next returns the pool of the next connection.
func (c *workerPools) next() *workerPool { return &c.all[int(c.last.Add(1))%len(c.all)] }

// end ends all pools.
func (c *workerPools) end() {
	for i := range c.all {
		c.all[i].end()
	}
}

// A task is work that a pool does once.
type task interface{ serve() }

const (
	// mostIdle is how many idle goroutines a pool keeps.
	mostIdle = 64
	// defaultDismiss is how long those stay at least that are not needed.
	defaultDismiss = 5 * time.Second
)

// serve has a goroutine serve a task.
func (c *workerPool) serve(w task) {
	if next := c.takeIdle(); next != nil {
		next <- w
		return
	}
	go c.run(w)
}

// takeIdle takes a goroutine that is idle; nil if there is none.
func (c *workerPool) takeIdle() chan task {
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

// run serves a task, and those that come after it until the goroutine is dismissed.
func (c *workerPool) run(w task) {
	for next := make(chan task, 1); w != nil; w = <-next {
		if w.serve(); !c.rest(next) {
			return
		}
	}
}

// rest makes a goroutine idle. It returns false if enough of them are.
func (c *workerPool) rest(next chan task) bool {
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
func (c *workerPool) watch() {
	if c.isWatched = c.dismissEvery > 0; c.isWatched {
		time.AfterFunc(c.dismissEvery, c.dismissSpare)
	}
}

// dismissSpare dismisses those that were idle all the time since it was called last.
func (c *workerPool) dismissSpare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismiss(c.spare)
	c.isWatched = false
	if c.spare = len(c.idle); c.spare > 0 {
		c.watch()
	}
}

// dismiss ends n goroutines, those that have been idle longest. The lock is held.
func (c *workerPool) dismiss(n int) {
	for _, next := range c.idle[:n] {
		close(next)
	}
	c.idle = slices.Delete(c.idle, 0, n)
}

// end dismisses all, and each that has work when that is done.
func (c *workerPool) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOver, c.spare = true, 0
	c.dismiss(len(c.idle))
}
