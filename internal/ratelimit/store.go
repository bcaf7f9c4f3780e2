package ratelimit

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// shards is the number of locks of a store.
	shards = 64
	// maxOverflow is how many rules have an overflow bucket in a shard before those are dropped that count no more: of
	// rules that were changed or removed.
	maxOverflow = 256
)

// bucketID identifies a bucket: a rule, and a hash of the rule and the key seeded so that no client can choose its bucket.
type bucketID struct{ rule, hash uint64 }

func (h *hasher) bucket(rule, key uint64) bucketID {
	// The constant spreads the keys of one rule over the shards apart from those of another.
	return bucketID{rule, key ^ rule*0x9e3779b97f4a7c15}
}

// A store keeps the theoretical arrival times of buckets, those asked for last first, up to a number of them.
type store struct {
	shards [shards]shard
}

// shard is a part of the store, with a lock of its own.
type shard struct {
	mu      sync.Mutex
	buckets *simplelru.LRU[bucketID, *int64]
	// overflow has, by rule, the latest arrival time of buckets that were pushed out while they still counted. A key that
	// has no bucket may be one of them, so all such keys share this one: to make the store forget a bucket, by any number
	// of other keys, never refills it.
	overflow map[uint64]int64
	now      int64 // of the decision that holds the lock
}

// newStore returns a store for at least so many buckets.
func newStore(buckets int) *store {
	s := &store{}
	for i := range s.shards {
		shard := &s.shards[i]
		shard.overflow = map[uint64]int64{}
		// It fails only for a size that is not positive.
		shard.buckets, _ = simplelru.NewLRU(max(1, (buckets+shards-1)/shards), shard.push)
	}
	return s
}

// place is the number of the shard that a bucket is in.
func (s *store) place(id bucketID) int { return int(id.hash % shards) }

// find returns where the arrival time of a bucket is kept, and the time; without a bucket it is that of the overflow, or 0.
func (s *store) find(place int, id bucketID) (*int64, int64) {
	shard := &s.shards[place]
	if tat, found := shard.buckets.Get(id); found {
		return tat, *tat
	}
	return nil, shard.overflow[id.rule]
}

// add keeps a new bucket. One that began with the arrival time of the overflow moves that on, too.
func (s *store) add(place int, id bucketID, tat, now int64) {
	shard := &s.shards[place]
	if shared := shard.overflow[id.rule]; shared > now {
		shard.overflow[id.rule] = max(shared, tat)
	}
	shard.now = now
	shard.buckets.Add(id, &tat)
}

// push keeps the arrival time of a bucket that loses its place, if it still counts.
func (s *shard) push(id bucketID, tat *int64) {
	if *tat <= s.now || *tat <= s.overflow[id.rule] {
		return
	}
	if len(s.overflow) >= maxOverflow {
		for r, t := range s.overflow {
			if t <= s.now {
				delete(s.overflow, r)
			}
		}
	}
	s.overflow[id.rule] = *tat
}

// hasher hashes keys with a seed that no client knows.
type hasher struct{ seed maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed()} }

func (h *hasher) text(key string) uint64  { return maphash.String(h.seed, key) }
func (h *hasher) bytes(key []byte) uint64 { return maphash.Bytes(h.seed, key) }
