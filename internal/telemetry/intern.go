package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// intern keeps one value for each key. Reading takes no lock and allocates nothing; adding copies the map, which is
// right for sets that are complete within a process's first minutes and read millions of times afterwards.
type intern[K comparable, V any] struct {
	known atomic.Pointer[map[K]*V]
	mu    sync.Mutex
}

// get returns the value of k and, if there is none, adds what create returns for it, which must not
// refer to memory that k borrows. It returns nil for a new key when limit keys are known already.
func (c *intern[K, V]) get(k K, limit int, create func(K) (K, *V)) *V {
	if known := c.known.Load(); known != nil {
		if v, ok := (*known)[k]; ok {
			return v
		}
		if len(*known) >= limit {
			return nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[K]*V)
	if known := c.known.Load(); known != nil {
		if v, ok := (*known)[k]; ok {
			return v
		}
		if len(*known) >= limit {
			return nil
		}
		next = maps.Clone(*known)
	}
	owned, v := create(k)
	next[owned] = v
	c.known.Store(&next)
	return v
}

// expect adds values for keys, as far as there is room, as get does for each, but copies what is known once for all.
func (c *intern[K, V]) expect(keys []K, limit int, create func(K) (K, *V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[K]*V, len(keys))
	maps.Copy(next, c.values())
	for _, k := range keys {
		if _, found := next[k]; !found && len(next) < limit {
			owned, v := create(k)
			next[owned] = v
		}
	}
	c.known.Store(&next)
}

// values returns the keys and values known now; the map must not be changed.
func (c *intern[K, V]) values() map[K]*V {
	if known := c.known.Load(); known != nil {
		return *known
	}
	return nil
}
