package ratelimit

import (
	"math/bits"
	"time"
)

// DefaultBuckets is how many buckets a Limiter has room for by default; each takes 32 bytes.
const DefaultBuckets = 1 << 20

// Limiter holds the buckets of all rules, and what is served under them. It outlives policy sets, is safe for
// concurrent use, and its memory is bounded.
type Limiter struct {
	buckets int
	store   *store
	slots   slotTable
	hasher  hasher
	start   time.Time
	shared  SharedStore
	still   bool
}

// New returns a Limiter with room for so many buckets; 0 means [DefaultBuckets]. The memory is taken when it is needed.
func New(buckets int) *Limiter {
	if buckets <= 0 {
		buckets = DefaultBuckets
	}
	return &Limiter{buckets: buckets, store: newStore(buckets), hasher: newHasher(), start: time.Now()}
}

// now is a time as buckets have it, in nanoseconds. It comes from the monotonic clock, as times of time.Now are: a
// bucket must not fill or empty when the time of day is set.
func (l *Limiter) now(at time.Time) int64 {
	if l.still {
		return 0
	}
	return int64(at.Sub(l.start))
}

// Rehearse forgets what was counted, and stops the clock: what is taken from a bucket stays taken
// until the next call. Tests of limits need it, which must not depend on how fast they run. Nothing
// may be served at the time.
func (l *Limiter) Rehearse() {
	l.store, l.still = newStore(l.buckets), true
}

// Decision is the answer about a request.
type Decision struct {
	// Charge refuses the request: of several such charges, the one that has to wait longest. It is
	// nil if the request may pass.
	Charge *Charge
	// RetryAfter is the number of whole seconds, at least 1, after which this very request would have passed.
	RetryAfter int
	// Unavailable means that Charge is of a shared limit that cannot be counted now.
	Unavailable bool
}

// Allowed reports whether the request may pass.
func (d Decision) Allowed() bool { return d.Charge == nil }

// Decide holds the charges of a request that came at the given time against their buckets. The request passes if all
// fit, and then all are taken; one that is refused takes nothing. A charge of a limit that only warns is taken with the
// others if it fits itself.
func (l *Limiter) Decide(c *Charges, at time.Time) Decision {
	if c.sharing {
		return l.decideShared(c, l.now(at))
	}
	return l.decide(c, l.now(at), true)
}

// Peek returns the answer that Decide would give; it takes nothing.
func (l *Limiter) Peek(c *Charges, at time.Time) Decision { return l.decide(c, l.now(at), false) }

// decide holds the locks of all shards concerned, taken in one order, so that either every bucket is charged or none.
func (l *Limiter) decide(c *Charges, now int64, take bool) (d Decision) {
	var locked uint64
	for i := range c.list {
		if charge := &c.list[i]; charge.here() {
			charge.at = l.store.place(charge.rule.id, l.hasher.bytes(charge.Key))
			locked |= 1 << charge.at.shard
		}
	}
	if locked == 0 {
		return d
	}
	l.lock(locked)
	var longest int64
	for i := range c.list {
		charge := &c.list[i]
		if !charge.here() {
			continue
		}
		tat, where := l.store.shards[charge.at.shard].find(charge.at)
		charge.where = where
		charge.after, charge.Wait = charge.rule.pace.decide(tat, now, charge.Cost)
		charge.Debt = max(tat, now) - now
		if charge.Wait > longest && !charge.warns() {
			d.Charge, longest = charge, charge.Wait
		}
	}
	if d.Charge == nil && take {
		l.take(c, now)
	}
	l.unlock(locked)
	if d.Charge != nil {
		d.RetryAfter = wholeSeconds(longest)
	}
	return d
}

// take takes the charges. Buckets that are in the table come first: a new one may push out another of this very
// request, which must be charged by then.
func (l *Limiter) take(c *Charges, now int64) {
	more := false
	for i := range c.list {
		switch charge := &c.list[i]; {
		case !charge.here() || charge.Wait > 0:
		case charge.where.tat != nil:
			*charge.where.tat = charge.after
			charge.Debt = charge.after - now
		default:
			more = true
		}
	}
	if !more {
		return
	}
	for i := range c.list {
		if charge := &c.list[i]; charge.here() && charge.Wait == 0 && charge.where.tat == nil {
			l.store.keep(charge.at, charge.where, charge.after, now)
			charge.Debt = charge.after - now
		}
	}
}

func (l *Limiter) lock(shards uint64) {
	for ; shards != 0; shards &= shards - 1 {
		l.store.shards[bits.TrailingZeros64(shards)].mu.Lock()
	}
}

func (l *Limiter) unlock(shards uint64) {
	for ; shards != 0; shards &= shards - 1 {
		l.store.shards[bits.TrailingZeros64(shards)].mu.Unlock()
	}
}
