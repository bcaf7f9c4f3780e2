package shared

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// leaseFor is how long tokens of a lease are kept until the rest is given back.
	leaseFor = time.Second
	// rememberFor is how long a refusal is remembered at most: tokens may have been given back since.
	rememberFor = time.Second
	// pauseFor is how long after a refusal a limit with a lease does not ask again at most: while
	// all tokens are taken as they come, one round trip can do for many requests only if it waits
	// for some of them.
	pauseFor = 10 * time.Millisecond

	knownShards = 16
	// maxKnown is about how many buckets a gateway remembers; each takes about 250 bytes.
	maxKnown = 1 << 16
)

// bucket is a gateway's knowledge of a bucket in Redis: that it is full, or that it has tokens from there. Times are of
// the gateway's clock.
type bucket struct {
	// tat is when it is empty again, as far as was known at the time asked; pausedUntil is until when it is not asked
	// again.
	tat, asked, pausedUntil int64

	lease    taken
	until    int64 // when the lease ends
	interval time.Duration
	leasing  chan struct{} // closed when the request that asks for a lease has its answer; nil if none asks
	listed   bool          // it is in the shard's list of leases
}

// filled wakes who waits for a lease.
func (e *bucket) filled() {
	if e.leasing != nil {
		close(e.leasing)
		e.leasing = nil
	}
}

// buckets are the buckets that a gateway knows something of, up to a number of them.
type buckets struct {
	shards [knownShards]bucketShard
}

type bucketShard struct {
	mu  sync.Mutex
	lru *simplelru.LRU[Key, *bucket]
	// leases are the keys of buckets with leases in about the order in which they end.
	leases []Key
}

// newBuckets returns room for so many; returned is given the leases of buckets that lose their
// place.
func newBuckets(size int, returned func(Key, taken, time.Duration)) *buckets {
	b := &buckets{}
	for i := range b.shards {
		// It fails only for a size that is not positive.
		b.shards[i].lru, _ = simplelru.NewLRU(max(1, size/knownShards), func(k Key, e *bucket) {
			e.filled()
			if e.lease.tokens > 0 {
				returned(k, e.lease, e.interval)
			}
		})
	}
	return b
}

func (b *buckets) shard(k *Key) *bucketShard {
	return &b.shards[binary.LittleEndian.Uint64(k[:8])%knownShards]
}

// consult decides on a demand without asking Redis, if that is possible. If another request is
// asking for a lease, it returns what to wait for before consulting again.
func (b *buckets) consult(d *Demand, now int64) <-chan struct{} {
	s := b.shard(&d.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.lru.Get(d.Key)
	if !found {
		if d.Limit.Lease > 0 {
			d.leasing = true
			s.lru.Add(d.Key, &bucket{leasing: make(chan struct{}), asked: now - int64(rememberFor),
				interval: d.Limit.Interval})
		}
		return nil
	}
	ahead := time.Duration(max(0, e.tat-now))
	if e.lease.tokens >= d.Cost && now < e.until {
		e.lease.tokens -= d.Cost
		d.decidedBy, d.taken = leased, taken{d.Cost, e.lease.seconds, e.lease.nanos}
		d.Ahead = max(0, ahead-time.Duration(e.lease.tokens)*d.Limit.Interval)
		return nil
	}
	wait := max(d.waitAhead(ahead), time.Duration(e.pausedUntil-now))
	if wait > 0 && now-e.asked < int64(rememberFor) {
		d.decidedBy, d.Wait, d.Ahead = known, wait, ahead
		return nil
	}
	if d.Limit.Lease > 0 && e.leasing == nil {
		d.leasing, e.leasing = true, make(chan struct{})
		return nil
	}
	return e.leasing
}

// Known fills in how long the demands have to wait, as far as that is known without asking Redis; it takes nothing.
func (s *Store) Known(demands []Demand) {
	now := s.clock()
	for i := range demands {
		d := &demands[i]
		shard := s.known.shard(&d.Key)
		shard.mu.Lock()
		if e, found := shard.lru.Peek(d.Key); found && e.lease.tokens < d.Cost {
			d.Ahead = time.Duration(max(0, e.tat-now))
			d.Wait = d.waitAhead(d.Ahead)
		}
		shard.mu.Unlock()
	}
}

// undo puts the tokens of a lease back that a request took and does not need: another limit refuses it.
func (b *buckets) undo(d *Demand, now int64) {
	s := b.shard(&d.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.lru.Peek(d.Key); found && now < e.until {
		e.lease = e.lease.plus(d.taken, d.Limit.Lease)
	}
}

// plus are both, as if all had been taken when the earlier were, so that not too much is given back of them.
func (t taken) plus(o taken, most int64) taken {
	if t.tokens > 0 && (t.seconds < o.seconds || t.seconds == o.seconds && t.nanos < o.nanos) {
		o.seconds, o.nanos = t.seconds, t.nanos
	}
	return taken{min(t.tokens+o.tokens, most), o.seconds, o.nanos}
}

// learn keeps what Redis answered at the time asked: that there is no token, or tokens beyond the needed ones.
func (b *buckets) learn(d *Demand, asked int64) {
	s := b.shard(&d.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.lru.Peek(d.Key)
	if !found {
		if d.Wait == 0 && d.taken.tokens <= d.Cost {
			return
		}
		e = &bucket{interval: d.Limit.Interval}
		s.lru.Add(d.Key, e)
	}
	e.tat, e.asked = asked+int64(d.Ahead), asked
	if d.Wait > 0 && d.Limit.Lease > 0 {
		e.pausedUntil = asked + int64(min(pauseFor, time.Duration(d.Limit.Lease)*d.Limit.Interval/2))
	}
	if surplus := d.taken.tokens - d.Cost; surplus > 0 {
		e.lease = e.lease.plus(taken{surplus, d.taken.seconds, d.taken.nanos}, d.Limit.Lease)
		e.until = asked + int64(leaseFor)
		if !e.listed {
			e.listed = true
			s.leases = append(s.leases, d.Key)
		}
	}
	if d.leasing {
		d.leasing = false
		e.filled()
	}
}

// unfill is for a demand that got no answer.
func (b *buckets) unfill(d *Demand) {
	s := b.shard(&d.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.lru.Peek(d.Key); found {
		e.filled()
	}
}

// sweep gives the leases back that have ended by now.
func (b *buckets) sweep(now int64, returned func(Key, taken, time.Duration)) {
	for i := range b.shards {
		b.shards[i].sweep(now, returned)
	}
}

func (s *bucketShard) sweep(now int64, returned func(Key, taken, time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.leases[:0]
	for _, k := range s.leases {
		e, found := s.lru.Peek(k)
		switch {
		case !found:
		case now < e.until:
			left = append(left, k)
		default:
			e.listed = false
			if e.lease.tokens > 0 {
				returned(k, e.lease, e.interval)
			}
			e.lease = taken{}
		}
	}
	clear(s.leases[len(left):])
	s.leases = left
}
