package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// shards is the number of locks of a store; a set of them fits a uint64.
	shards = 64
	// ways is how many buckets share a line of the table.
	ways = 4
	// maxOverflow is how many rules have an overflow bucket in a shard before those are dropped that count no more: of
	// rules that were changed or removed.
	maxOverflow = 256
)

// A store keeps the theoretical arrival times of buckets, up to a number of them. Each is looked for in three places:
//
//   - a flat table, where nearly all are found with one access to memory: in their own line, or in
//     its twin;
//   - an LRU cache, for buckets whose lines in the table are full of others that still count;
//   - the overflow, one bucket of each rule and shard that replaces all buckets that were pushed
//     out of the cache.
//
// A bucket whose time has come counts no more, and its room is free: nothing is swept.
type store struct {
	shards    [shards]shard
	pairs     uint32 // of lines in the table of each shard, a power of two
	cacheSize int    // the size of the cache of each shard
}

// shard is a part of the store, with a lock of its own.
type shard struct {
	mu sync.Mutex
	// table is made with the first bucket.
	table []line
	cache *simplelru.LRU[bucket, int64]
	// overflow has, by rule, the latest arrival time of buckets that were pushed out while they still counted. A key
	// that has no bucket may be one of them, so all such keys share this one: to make the store forget a bucket, by any
	// number of other keys, never refills it.
	overflow map[uint16]int64
	_        [64]byte // so that no two locks share a cache line
}

// line is a part of the table: one cache line.
type line struct {
	tags [ways]uint64
	tats [ways]int64
}

// bucket is the location of a bucket: a shard, a pair of lines, and a tag of 48 bits of the key's
// hash and 16 bits of the rule's, whose first bit says which of the lines is its own. The hash is
// seeded, so that no client can choose its bucket.
type bucket struct {
	tag   uint64
	pair  uint32
	shard uint32
}

func (b bucket) line() uint32 { return b.pair<<1 | uint32(b.tag>>63) }

func (b bucket) rule() uint16 { return uint16(b.tag) }

// newStore returns a store in whose table so many buckets find room while not more than half of it is in use.
func newStore(buckets int) *store {
	pairs := max(1, (buckets+shards*ways-1)/(shards*ways))
	return &store{pairs: 1 << bits.Len32(uint32(pairs-1)), cacheSize: max(4, buckets/16/shards)}
}

// place returns the location of the bucket of a rule and the hash of a key.
func (s *store) place(rule, hash uint64) bucket {
	// The constant spreads the keys of one rule apart from another's.
	hash ^= rule * 0x9e3779b97f4a7c15
	return bucket{tag: hash&^0xffff | rule&0xffff, pair: uint32(hash>>6) & (s.pairs - 1), shard: uint32(hash % shards)}
}

// bucketSlot is the place at which a bucket was found. The zero value is nowhere.
type bucketSlot struct {
	tat      *int64 // in the table
	isCached bool
}

// find returns the arrival time of a bucket, and its place. For a bucket that is nowhere it returns
// the arrival time of the overflow, or 0.
func (s *shard) find(b bucket) (int64, bucketSlot) {
	if s.table == nil {
		return 0, bucketSlot{}
	}
	own := b.line()
	for _, l := range [2]*line{&s.table[own], &s.table[own^1]} {
		for i := range l.tags {
			if l.tags[i] == b.tag {
				return l.tats[i], bucketSlot{tat: &l.tats[i]}
			}
		}
	}
	if s.cache != nil {
		if tat, ok := s.cache.Get(b); ok {
			return tat, bucketSlot{isCached: true}
		}
	}
	return s.overflow[b.rule()], bucketSlot{}
}

// keep keeps the arrival time of a bucket that find did not find in the table.
func (s *store) keep(b bucket, where bucketSlot, tat, now int64) {
	h := &s.shards[b.shard]
	switch shared := h.overflow[b.rule()]; {
	case where.isCached:
		h.cache.Remove(b)
	case shared > now:
		// It began with the arrival time of the overflow, and moves that on.
		h.overflow[b.rule()] = max(shared, tat)
	}
	if h.table == nil {
		h.table = make([]line, 2*s.pairs)
	}
	own := b.line()
	l, i := &h.table[own], h.table[own].least()
	if twin := &h.table[own^1]; l.tats[i] > now {
		if j := twin.least(); twin.tats[j] < l.tats[i] {
			l, i = twin, j
		}
	}
	// Of the buckets that count, the one whose time comes first gives way.
	switch tag, least := l.tags[i], l.tats[i]; {
	case least <= now:
		l.tags[i], l.tats[i] = b.tag, tat
	case least < tat:
		l.tags[i], l.tats[i] = b.tag, tat
		s.cacheBucket(bucket{tag: tag, pair: b.pair, shard: b.shard}, least, now)
	default:
		s.cacheBucket(b, tat, now)
	}
}

// least is the index of the bucket that counts for the shortest time.
func (l *line) least() int {
	least := 0
	for i := range l.tats {
		if l.tats[i] < l.tats[least] {
			least = i
		}
	}
	return least
}

// cacheBucket keeps a bucket outside of the table.
func (s *store) cacheBucket(b bucket, tat, now int64) {
	h := &s.shards[b.shard]
	if h.cache == nil {
		// It fails only for a size that is not positive.
		h.cache, _ = simplelru.NewLRU[bucket, int64](s.cacheSize, nil)
		h.overflow = map[uint16]int64{}
	}
	if h.cache.Len() == s.cacheSize {
		oldest, last, _ := h.cache.RemoveOldest()
		h.push(oldest.rule(), last, now)
	}
	h.cache.Add(b, tat)
}

// push keeps the arrival time of a bucket that loses its place in the cache, if it still counts.
func (s *shard) push(rule uint16, tat, now int64) {
	if tat <= now || tat <= s.overflow[rule] {
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

func (h *hasher) bytes(key []byte) uint64 { return maphash.Bytes(h.seed, key) }
