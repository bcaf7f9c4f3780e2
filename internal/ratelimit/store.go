package ratelimit

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shards is the number of parts of the store, each with a lock of its own.
const shards = 64

// bucketID identifies a bucket by its rule and a seeded hash of its key, so that no client can choose its bucket.
type bucketID struct{ rule, high, low uint64 }

// shard is a part of the store.
type shard struct {
	mu      sync.Mutex
	buckets *simplelru.LRU[bucketID, int64] // theoretical arrival times
	// overflow has, by rule, the latest arrival time of buckets that were evicted while they still counted. A key that is
	// not in the store may be one of them, so all such keys share this bucket: to make the store forget a bucket, by any
	// number of other keys, never refills it.
	overflow map[uint64]int64
	now      int64 // of the decision that holds the lock
}

func newShard(size int) *shard {
	s := &shard{overflow: map[uint64]int64{}}
	// It fails only for a size that is not positive.
	s.buckets, _ = simplelru.NewLRU(max(size, 1), s.evicted)
	return s
}

func (s *shard) evicted(id bucketID, tat int64) {
	if tat > s.now && tat > s.overflow[id.rule] {
		s.overflow[id.rule] = tat
	}
}

// tat is the theoretical arrival time of a bucket; shared tells that it is that of the overflow.
func (s *shard) tat(id bucketID) (tat int64, shared bool) {
	if tat, found := s.buckets.Get(id); found {
		return tat, false
	}
	if tat, found := s.overflow[id.rule]; found {
		if tat > s.now {
			return tat, true
		}
		delete(s.overflow, id.rule)
	}
	return 0, false
}

func (s *shard) set(id bucketID, tat int64, shared bool) {
	s.buckets.Add(id, tat)
	if shared && tat > s.overflow[id.rule] {
		s.overflow[id.rule] = tat
	}
}

// hasher makes bucket IDs.
type hasher struct{ high, low maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *hasher) text(rule uint64, key string) bucketID {
	return bucketID{rule, maphash.String(h.high, key), maphash.String(h.low, key)}
}

func (h *hasher) bytes(rule uint64, key []byte) bucketID {
	return bucketID{rule, maphash.Bytes(h.high, key), maphash.Bytes(h.low, key)}
}

// shardOf is the number of the shard that a bucket is in.
func (id bucketID) shardOf() int { return int((id.high ^ id.rule) % shards) }
