package telemetry

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// intern keeps one value for each key. Reading takes no lock and does not allocate; adding copies what was added
// lately, and now and then all, which is right for sets that are complete within a process's first minutes and read
// millions of times afterwards.
type intern[K comparable, V any] struct {
	known atomic.Pointer[interned[K, V]]
	mu    sync.Mutex
}

// interned are keys with their values. The maps do not change.
type interned[K comparable, V any] struct{ most, recent map[K]*V }

// maxRecent is how many keys are added before all are copied.
const maxRecent = 32

func (n *interned[K, V]) find(k K) *V {
	if v, ok := n.most[k]; ok {
		return v
	}
	if len(n.recent) == 0 {
		return nil
	}
	return n.recent[k]
}

func (n *interned[K, V]) len() int { return len(n.most) + len(n.recent) }

// with returns the keys and one more.
func (n *interned[K, V]) with(k K, v *V) *interned[K, V] {
	if len(n.recent) == maxRecent {
		return &interned[K, V]{most: joined(n.most, n.recent), recent: map[K]*V{k: v}}
	}
	return &interned[K, V]{most: n.most, recent: joined(n.recent, map[K]*V{k: v})}
}

func joined[K comparable, V any](a, b map[K]*V) map[K]*V {
	both := make(map[K]*V, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// get returns the value of k and, if there is none, adds what create returns for it, which must not
// refer to memory that k borrows. It returns nil for a new key when limit keys are known already.
func (c *intern[K, V]) get(k K, limit int, create func(K) (K, *V)) *V {
	if known := c.known.Load(); known != nil {
		if v := known.find(k); v != nil {
			return v
		}
		if known.len() >= limit {
			return nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known.Load()
	if known == nil {
		known = &interned[K, V]{}
	}
	if v := known.find(k); v != nil {
		return v
	}
	if known.len() >= limit {
		return nil
	}
	owned, v := create(k)
	c.known.Store(known.with(owned, v))
	return v
}

// expect adds values for keys, as far as there is room, as get does for each, but copies what is known once for all.
func (c *intern[K, V]) expect(keys []K, limit int, create func(K) (K, *V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[K]*V, len(keys))
	maps.Insert(next, c.all())
	for _, k := range keys {
		if _, found := next[k]; !found && len(next) < limit {
			owned, v := create(k)
			next[owned] = v
		}
	}
	c.known.Store(&interned[K, V]{most: next})
}

// all goes through the keys and values known now.
func (c *intern[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		known := c.known.Load()
		if known == nil {
			return
		}
		for _, part := range [...]map[K]*V{known.most, known.recent} {
			for k, v := range part {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
