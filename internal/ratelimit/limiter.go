package ratelimit

import (
	"fmt"
	"slices"
	"time"
)

// DefaultBuckets is how many buckets a Limiter has room for if it is not told; each takes about 150 bytes.
const DefaultBuckets = 1 << 18

// Limiter holds the buckets of all rules. It is safe for concurrent use, and its memory is bounded.
type Limiter struct {
	store  *store
	hasher hasher
	clock  func() int64
}

// New returns a Limiter with room for so many buckets, rounded up to a multiple of 64; 0 means [DefaultBuckets].
func New(buckets int) *Limiter {
	start := time.Now()
	// The monotonic clock: a bucket must not fill or empty when the time of day is set.
	return newLimiter(buckets, func() int64 { return int64(time.Since(start)) })
}

func newLimiter(buckets int, clock func() int64) *Limiter {
	if buckets <= 0 {
		buckets = DefaultBuckets
	}
	return &Limiter{store: newStore(buckets), hasher: newHasher(), clock: clock}
}

// Decision is what became of a request.
type Decision struct {
	// Rule is the strictest of the rules that refuse the request; nil if it may pass.
	Rule *Rule
	// RetryAfter is the number of whole seconds, at least 1, after which this request would have passed.
	RetryAfter int
}

// Allowed tells whether the request may pass.
func (d Decision) Allowed() bool { return d.Rule == nil }

// Message says to the client which limit it hit.
func (d Decision) Message() string {
	r := d.Rule
	return fmt.Sprintf("the rate limit '%s' allows %s in %s %s: try again after %s", r.Name, count(r.Requests, "request"),
		count(int(r.Period/time.Second), "second"), scope(r), count(d.RetryAfter, "second"))
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func scope(r *Rule) string {
	switch r.Key {
	case ClientAddress:
		return "for each client address"
	case Header:
		return fmt.Sprintf("for each value of the header '%s'", r.HeaderName)
	case Namespace:
		return "for each namespace"
	case Resource:
		return "for each resource"
	case Expression:
		return "for each key"
	}
	return "in all"
}

// charge is what one rule makes of one request.
type charge struct {
	rule  *compiled
	id    bucketID
	place int
	tat   *int64 // nil for a key that the store does not have
	after int64
}

// maxCharges is how many rules one request can be held against without memory of its own.
const maxCharges = 8

// Decide holds a request against all rules that concern it and counts it if it may pass.
func (l *Limiter) Decide(rules *Rules, r *Request) Decision {
	var room [maxCharges]charge
	charges := room[:0]
	for _, list := range rules.candidates(r.Info) {
		for _, c := range list {
			if c.concerns(r) {
				id := l.hasher.bucket(c.id, l.key(c, r))
				charges = append(charges, charge{rule: c, id: id, place: l.store.place(id)})
			}
		}
	}
	if len(charges) == 0 {
		return Decision{}
	}
	return l.take(charges)
}

// take decides under the locks of all shards concerned, taken in one order, so that either every bucket is charged or none.
func (l *Limiter) take(charges []charge) Decision {
	var numbers [maxCharges]int
	locked := numbers[:0]
	for i := range charges {
		if n := charges[i].place; !slices.Contains(locked, n) {
			locked = append(locked, n)
		}
	}
	slices.Sort(locked)
	for _, n := range locked {
		l.store.shards[n].mu.Lock()
	}
	now := l.clock()
	var strictest *compiled
	var longest int64
	for i := range charges {
		c := &charges[i]
		var tat, wait int64
		c.tat, tat = l.store.find(c.place, c.id)
		if c.after, wait = c.rule.pace.decide(tat, now); wait > longest {
			strictest, longest = c.rule, wait
		}
	}
	if strictest == nil {
		l.charge(charges, now)
	}
	for _, n := range locked {
		l.store.shards[n].mu.Unlock()
	}
	if strictest == nil {
		return Decision{}
	}
	return Decision{Rule: &strictest.Rule, RetryAfter: wholeSeconds(longest)}
}

// charge counts an admitted request. Buckets that are there come first: a new one may push out another of this very
// request, which must be charged by then.
func (l *Limiter) charge(charges []charge, now int64) {
	added := false
	for i := range charges {
		if c := &charges[i]; c.tat != nil {
			*c.tat = c.after
		} else {
			added = true
		}
	}
	if !added {
		return
	}
	for i := range charges {
		if c := &charges[i]; c.tat == nil {
			l.store.add(c.place, c.id, c.after, now)
		}
	}
}

// key is the hash of what a rule counts a request by.
func (l *Limiter) key(c *compiled, r *Request) uint64 {
	switch c.Key {
	case ClientAddress:
		a := r.ClientAddress.Unmap()
		switch {
		case !a.IsValid():
			return l.hasher.text("")
		case a.Is6():
			// Whoever has an IPv6 address has a /64 of them.
			b := a.As16()
			return l.hasher.bytes(b[:8])
		}
		b := a.As4()
		return l.hasher.bytes(b[:])
	case Header:
		value, _ := r.Headers.Get(c.HeaderName)
		return l.hasher.text(value)
	case Namespace:
		return l.hasher.text(r.Info.Namespace)
	case Resource:
		return l.hasher.text(r.Info.Resource) + 31*l.hasher.text(r.Info.Group)
	case Expression:
		f := r.Frame()
		value, err := c.KeyProgram.EvalString(f, f.Vars())
		if err != nil {
			value = ""
		}
		return l.hasher.text(value)
	}
	return 0
}
