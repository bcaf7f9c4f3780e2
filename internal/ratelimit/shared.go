package ratelimit

import (
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
)

// SharedStore decides on shared limits, as [shared.Store] does.
type SharedStore interface {
	// Take reports whether a request passes, and takes what it demands if so. An error means that nothing was decided.
	Take([]shared.Demand) (bool, error)
	// Known fills in how long the demands have to wait, as far as that is known without asking the
	// store.
	Known([]shared.Demand)
}

// Share has shared limits counted by a store. Without one they are counted as when it is unavailable. It must be called
// before the Limiter decides on anything.
func (l *Limiter) Share(s SharedStore) { l.shared = s }

// decideShared decides on charges, some of shared limits. What is counted here comes first, so that
// the store is not asked about requests that are refused in any case; it is given back if the store
// refuses. In between, other requests may find the buckets here fuller than they are, but never
// emptier.
func (l *Limiter) decideShared(c *Charges, now int64) Decision {
	c.demand()
	if d := l.decide(c, now, true); !d.Allowed() {
		if l.shared != nil {
			l.shared.Known(c.demands)
			c.applyShared()
		}
		return c.strictest()
	}
	passes, err := false, error(shared.ErrUnavailable)
	if l.shared != nil {
		passes, err = l.shared.Take(c.demands)
		c.failure = err
	}
	switch {
	case err != nil:
		return l.fallBack(c, now)
	case passes:
		c.applyShared()
		return Decision{}
	}
	c.applyShared()
	l.giveBack(c, now)
	return c.strictest()
}

// demand makes the demands of the shared limits, which are not decided here.
func (c *Charges) demand() {
	for i := range c.list {
		charge := &c.list[i]
		if charge.by != byStore || !charge.Paced() {
			continue
		}
		p := charge.rule.pace
		c.demands = append(c.demands, shared.Demand{
			Key: shared.KeyOf(charge.rule.id, charge.Key), Cost: charge.Cost, Advisory: charge.warns(),
			Limit: shared.Limit{
				Interval: time.Duration(p.interval), Depth: time.Duration(p.tolerance + p.interval),
				Lease: min(int64(charge.Rule.Sharing.Lease), p.most),
			},
		})
	}
}

// applyShared copies the answers to the demands into the charges.
func (c *Charges) applyShared() {
	next := 0
	for i := range c.list {
		if charge := &c.list[i]; charge.by == byStore && charge.Paced() {
			charge.Wait, charge.Debt = int64(c.demands[next].Wait), int64(c.demands[next].Ahead)
			next++
		}
	}
}

// strictest is the decision of the charge that has to wait longest.
func (c *Charges) strictest() (d Decision) {
	var longest int64
	for i := range c.list {
		if charge := &c.list[i]; charge.Wait > longest && !charge.warns() {
			d.Charge, longest = charge, charge.Wait
		}
	}
	if d.Charge != nil {
		d.RetryAfter = wholeSeconds(longest)
	}
	return d
}

// fallBack decides without the store, as the rules say.
func (l *Limiter) fallBack(c *Charges, now int64) Decision {
	var denies *Charge
	hasLocal := false
	for i := range c.list {
		charge := &c.list[i]
		if charge.by == byProcess {
			charge.by = decided
			continue
		}
		charge.by = byNobody
		switch sharing := charge.Rule.Sharing; {
		case sharing.WhenUnavailable == LocalLimit:
			hasLocal = true
		case sharing.WhenUnavailable == Deny && !charge.warns() && charge.Paced():
			denies = charge
		}
	}
	if denies != nil {
		l.giveBack(c, now)
		return Decision{Charge: denies, RetryAfter: 1, Unavailable: true}
	}
	if !hasLocal {
		return Decision{}
	}
	for i := range c.list {
		if charge := &c.list[i]; charge.by == byNobody && charge.Rule.Sharing.WhenUnavailable == LocalLimit {
			charge.by = byProcess
		}
	}
	d := l.decide(c, now, true)
	if !d.Allowed() {
		l.giveBack(c, now)
	}
	return d
}

// giveBack gives back what decide took at the time now from buckets here for a request that is
// refused elsewhere: all of it if nothing was taken since, else less the time that has passed, so
// that never more is given back than is still in them.
func (l *Limiter) giveBack(c *Charges, now int64) {
	passed := max(l.now(time.Now())-now, 0)
	for i := range c.list {
		charge := &c.list[i]
		if charge.Rule.Sharing != nil || !charge.Paced() || charge.Wait > 0 {
			continue
		}
		back := charge.Cost * charge.rule.pace.interval
		s := &l.store.shards[charge.at.shard]
		s.mu.Lock()
		tat, where := s.find(charge.at)
		if tat != charge.after {
			back = max(back-passed, 0)
		}
		switch {
		case where.tat != nil:
			*where.tat = tat - back
		case where.isCached:
			l.store.keep(charge.at, where, tat-back, now+passed)
		}
		s.mu.Unlock()
		charge.Debt = max(charge.Debt-back, 0)
	}
}
