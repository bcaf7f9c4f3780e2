package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

const (
	// shards is the number of locks of a store.
	shards = 64
	// ways is how many buckets have the same place: as many hashes as there are in a cache line.
	ways = 8
	// maxOverflow is how many rules have an overflow bucket in a shard before those are dropped that count no more: of
	// rules that were changed or removed.
	maxOverflow = 256
)

// bucketID identifies a bucket: a rule, and a hash of the rule and the key seeded so that no client can choose its bucket.
type bucketID struct{ rule, hash uint64 }

func (h *hasher) bucket(rule, key uint64) bucketID {
	// The constant spreads the keys of one rule over the table apart from those of another.
	return bucketID{rule, key ^ rule*0x9e3779b97f4a7c15}
}

// set is the buckets of one place, of which each number is in an array of its own: to find a bucket takes the line of the
// hashes and the line of the times, which a processor reads together.
type set struct {
	hashes [ways]uint64
	tats   [ways]int64 // theoretical arrival times
	rules  [ways]uint64
}

// A store is a table of buckets with eight ways for each place. It is as large as it will ever be from the start and has
// no pointers for the garbage collector to follow. To look up a key among a million is one access to memory, where a list
// in order of use needs five (measured: 4 times as slow).
//
// A bucket whose theoretical arrival time has passed says no more than none at all, so its way is free. A new key in a
// full place pushes out the bucket that counts for the shortest time from now on, so those of who asks most go last.
type store struct {
	sets   []set
	shards [shards]shard
}

// shard is the lock of every 64th place.
type shard struct {
	mu sync.Mutex
	// overflow has, by rule, the latest arrival time of buckets that were pushed out while they still counted. A key that
	// has no bucket may be one of them, so all such keys share this one: to make the store forget a bucket, by any number
	// of other keys, never refills it.
	overflow map[uint64]int64
	_        [64 - 16]byte // a cache line to each lock
}

// newStore returns a store with ways for at least so many buckets.
func newStore(buckets int) *store {
	places := max(shards, 1<<bits.Len(uint((buckets+ways-1)/ways-1)))
	s := &store{sets: make([]set, places)}
	for i := range s.shards {
		s.shards[i].overflow = map[uint64]int64{}
	}
	return s
}

// place is the number of the set that a bucket is in.
func (s *store) place(id bucketID) int { return int(id.hash & uint64(len(s.sets)-1)) }

// shardOf is the number of the shard that holds the lock of a place.
func shardOf(place int) int { return place % shards }

// find returns where the arrival time of a bucket is kept, and the time; without a bucket it is that of the overflow, or 0.
func (s *store) find(place int, id bucketID) (*int64, int64) {
	set := &s.sets[place]
	for i, hash := range set.hashes {
		if hash == id.hash {
			return &set.tats[i], set.tats[i]
		}
	}
	if overflow := s.shards[shardOf(place)].overflow; len(overflow) > 0 {
		return nil, overflow[id.rule]
	}
	return nil, 0
}

// add keeps a new bucket. One that began with the arrival time of the overflow moves that on, too.
func (s *store) add(place int, id bucketID, tat, now int64) {
	set, shard := &s.sets[place], &s.shards[shardOf(place)]
	way := 0
	for i, t := range set.tats {
		if t < set.tats[way] {
			way = i
		}
	}
	if shared := shard.overflow[id.rule]; shared > now {
		shard.overflow[id.rule] = max(shared, tat)
	}
	if set.tats[way] > now {
		shard.push(set.rules[way], set.tats[way], now)
	}
	set.hashes[way], set.tats[way], set.rules[way] = id.hash, tat, id.rule
}

// push keeps the arrival time of a bucket that loses its place.
func (s *shard) push(rule uint64, tat, now int64) {
	if tat <= s.overflow[rule] {
		return
	}
	if len(s.overflow) >= maxOverflow {
		for r, t := range s.overflow {
			if t <= now {
				delete(s.overflow, r)
			}
		}
	}
	s.overflow[rule] = tat
}

// hasher hashes keys with a seed that no client knows.
type hasher struct{ seed maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed()} }

func (h *hasher) text(key string) uint64  { return maphash.String(h.seed, key) }
func (h *hasher) bytes(key []byte) uint64 { return maphash.Bytes(h.seed, key) }
