package state

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/admission-gateway/gateway/internal/document"
)

const (
	// maxEntries and maxCached bound what is kept of what was read on demand.
	maxEntries = 4096
	maxCached  = 64 << 20
	// maxReadings is how much is read on demand at a time.
	maxReadings = 32
	// entryOverhead is about what an entry takes beside its objects, in bytes.
	entryOverhead = 512
)

// reading names what is read on demand.
type reading struct {
	backend Backend
	target  string
}

// cache keeps what was read on demand for a short while, the latest used of it. What several requests need at once is
// read once.
type cache struct {
	mu     sync.Mutex
	known  *simplelru.LRU[reading, cached]
	bytes  int64
	active map[reading]*call
	slots  chan struct{} // one for each reading that is under way
}

// cached is the outcome of a reading. What was not found is not kept: it may be there the next moment.
type cached struct {
	objects []document.Node
	bytes   int64
	until   time.Time
}

// call is a reading that is under way.
type call struct {
	done    chan struct{}
	objects []document.Node
	err     error
}

func newCache() (*cache, error) {
	c := &cache{active: map[reading]*call{}, slots: make(chan struct{}, maxReadings)}
	var err error
	c.known, err = simplelru.NewLRU(maxEntries, func(_ reading, e cached) { c.bytes -= e.bytes })
	return c, err
}

// get returns what is kept, or reads it. read has a time limit of its own, so that one impatient client does not spoil
// it for the others; it is in the trace of the client that came first.
func (c *cache) get(ctx context.Context, r reading, ttl, limit time.Duration,
	read func(context.Context) (listing, error)) ([]document.Node, error) {
	c.mu.Lock()
	if e, ok := c.known.Get(r); ok && time.Now().Before(e.until) {
		c.mu.Unlock()
		return e.objects, nil
	}
	one, joined := c.active[r]
	if !joined {
		one = &call{done: make(chan struct{})}
		c.active[r] = one
		go c.read(context.WithoutCancel(ctx), r, one, ttl, limit, read)
	}
	c.mu.Unlock()
	select {
	case <-one.done:
		return one.objects, one.err
	case <-ctx.Done():
		return nil, errOver
	}
}

func (c *cache) read(ctx context.Context, r reading, one *call, ttl, limit time.Duration,
	read func(context.Context) (listing, error)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started := time.Now()
	all, err := c.limited(ctx, read)
	one.objects, one.err = all.objects, err
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(one.done)
	delete(c.active, r)
	size := all.bytes + int64(len(r.target)) + entryOverhead
	if err != nil || all.absent || size > maxCached {
		return
	}
	c.known.Remove(r)
	c.known.Add(r, cached{objects: all.objects, bytes: size, until: started.Add(ttl)})
	for c.bytes += size; c.bytes > maxCached; {
		c.known.RemoveOldest()
	}
}

// limited reads when not too much is being read already.
func (c *cache) limited(ctx context.Context, read func(context.Context) (listing, error)) (listing, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		return read(ctx)
	case <-ctx.Done():
		return listing{}, errBusy
	}
}
