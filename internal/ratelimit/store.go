package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

const (
	// shards is the number of locks of a store.
	shards = 64
	// ways is how many buckets have the same place; they are three cache lines.
	ways = 8
	// maxOverflow is how many rules have an overflow bucket in a shard before those are dropped that count no more: of
	// rules that were changed or removed.
	maxOverflow = 256
)

// bucketID identifies a bucket by its rule and a seeded hash of its key, so that no client can choose its bucket.
type bucketID struct{ rule, key uint64 }

// bucket is one key under one rule. One whose theoretical arrival time has passed says no more than none at all, so its
// place is free.
type bucket struct {
	id  bucketID
	tat int64
}

// A store is a table of buckets with eight places for each hash. It is as large as it will ever be from the start, has no
// pointers for the garbage collector to follow, and a decision reads one set of it: to look up a key among a million is
// one access to memory, where a list in order of use needs five (measured: 4 times as slow).
//
// A new key in a full set takes the place of the bucket that counts for the shortest time from now on, so the buckets of
// those who ask most are the last to go.
type store struct {
	sets   [][ways]bucket
	shards [shards]shard
}

// shard is the lock of every 64th set.
type shard struct {
	mu sync.Mutex
	// overflow has, by rule, the latest arrival time of buckets that were pushed out while they still counted. A key that
	// has no bucket may be one of them, so all such keys share this one: to make the store forget a bucket, by any number
	// of other keys, never refills it.
	overflow map[uint64]int64
	_        [64 - 16]byte // a cache line to each lock
}

// newStore returns a store with places for at least so many buckets.
func newStore(buckets int) *store {
	sets := max(shards, 1<<bits.Len(uint((buckets+ways-1)/ways-1)))
	s := &store{sets: make([][ways]bucket, sets)}
	for i := range s.shards {
		s.shards[i].overflow = map[uint64]int64{}
	}
	return s
}

// place is the number of the set that a bucket is in.
func (s *store) place(id bucketID) int {
	return int((id.key ^ id.rule*0x9e3779b97f4a7c15) & uint64(len(s.sets)-1))
}

// shardOf is the number of the shard that holds the lock of a set.
func shardOf(place int) int { return place % shards }

// find returns a bucket and its theoretical arrival time; without a bucket it is that of the overflow, or 0.
func (s *store) find(place int, id bucketID) (*bucket, int64) {
	set := &s.sets[place]
	for i := range set {
		if b := &set[i]; b.id == id {
			return b, b.tat
		}
	}
	if overflow := s.shards[shardOf(place)].overflow; len(overflow) > 0 {
		return nil, overflow[id.rule]
	}
	return nil, 0
}

// add keeps a new bucket. One that began with the arrival time of the overflow moves that on, too.
func (s *store) add(place int, id bucketID, tat, now int64) {
	set := &s.sets[place]
	b := &set[0]
	for i := range set[1:] {
		if set[i+1].tat < b.tat {
			b = &set[i+1]
		}
	}
	shard := &s.shards[shardOf(place)]
	if shared := shard.overflow[id.rule]; shared > now {
		shard.overflow[id.rule] = max(shared, tat)
	}
	if b.tat > now {
		shard.push(b, now)
	}
	*b = bucket{id, tat}
}

// push keeps the arrival time of a bucket that loses its place.
func (s *shard) push(b *bucket, now int64) {
	if b.tat <= s.overflow[b.id.rule] {
		return
	}
	if len(s.overflow) >= maxOverflow {
		for rule, tat := range s.overflow {
			if tat <= now {
				delete(s.overflow, rule)
			}
		}
	}
	s.overflow[b.id.rule] = b.tat
}

// hasher hashes keys with a seed that no client knows.
type hasher struct{ seed maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed()} }

func (h *hasher) text(key string) uint64  { return maphash.String(h.seed, key) }
func (h *hasher) bytes(key []byte) uint64 { return maphash.Bytes(h.seed, key) }
