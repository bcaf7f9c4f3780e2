package ratelimit

import (
	"container/list"
	"time"
)

// Enter asks for a place among the requests that are served, under every rule that bounds them. It returns nil if there
// is one under each, which are then held until Leave; else the charge of a rule that has none, and nothing is held.
// Under a rule that only warns there is always one.
func (l *Limiter) Enter(c *Charges) (full *Charge) {
	if !c.boundsInFlight {
		return nil
	}
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	return l.enter(c)
}

func (l *Limiter) enter(c *Charges) (full *Charge) {
	t := &l.slots
	for i := range c.list {
		charge := &c.list[i]
		if !charge.Rule.InFlight.bounds() || charge.ruleSlots != nil {
			continue
		}
		r := t.ruleOf(charge.rule)
		key := t.keyOf(r, l.hasher.bytes(charge.Key))
		charge.Slot = r.crowd(key)
		if charge.Slot != SlotFree && !charge.warns() {
			t.forget(r, key)
			l.leave(c)
			return charge
		}
		r.serve(key)
		charge.ruleSlots, charge.keySlots = r, key
	}
	return nil
}

// Leave gives back what Enter or Wait gave, if anything. It may be called again.
func (l *Limiter) Leave(c *Charges) {
	if !c.boundsInFlight {
		return
	}
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	l.leave(c)
}

func (l *Limiter) leave(c *Charges) {
	for i := range c.list {
		if charge := &c.list[i]; charge.ruleSlots != nil {
			l.slots.leave(charge.releaseSlot())
		}
	}
}

// Wait waits for the place that Enter did not find under the rule of a charge, and for those under
// the others, until the given time at the latest, or until gone is closed. A request holds no place
// while it waits for another. Wait returns nil if it has all of them, else the charge whose queue
// is full, or in whose queue the time passed.
func (l *Limiter) Wait(c *Charges, full *Charge, until time.Time, gone <-chan struct{}) *Charge {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for full != nil {
		turn, place := l.line(full)
		if turn == nil {
			return full
		}
		select {
		case <-turn:
		case <-gone:
			l.giveUp(full, turn, place)
			return full
		case <-timer.C:
			l.giveUp(full, turn, place)
			return full
		}
		l.slots.mu.Lock()
		l.slots.waiting--
		full = l.enter(c)
		l.slots.mu.Unlock()
	}
	return nil
}

// line puts a request into the queue of its key under the rule of a charge; nil if that is full.
func (l *Limiter) line(c *Charge) (turn chan struct{}, place *list.Element) {
	t := &l.slots
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ruleOf(c.rule)
	key := t.keyOf(r, l.hasher.bytes(c.Key))
	if key.waiting.Len() >= r.bounds.QueueLength {
		t.forget(r, key)
		return nil, nil
	}
	c.ruleSlots, c.keySlots = r, key
	t.waiting++
	turn = make(chan struct{})
	place = key.waiting.PushBack(turn)
	r.queue(key)
	r.dispatch()
	return turn, place
}

// giveUp takes a request out of the queue, or gives back the place that it has just got.
func (l *Limiter) giveUp(c *Charge, turn chan struct{}, place *list.Element) {
	t := &l.slots
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	select {
	case <-turn:
		t.leave(c.releaseSlot())
		return
	default:
	}
	r, key := c.releaseSlot()
	key.waiting.Remove(place)
	if key.turn != nil && key.waiting.Len() == 0 {
		r.ready.Remove(key.turn)
		key.turn = nil
	}
	t.forget(r, key)
}

// Waiting is how many requests wait now.
func (l *Limiter) Waiting() int {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	return l.slots.waiting
}

// Dropped counts a request that found no place under the rule of a charge, and returns after how many seconds it may
// come again: more while that goes on.
func (l *Limiter) Dropped(c *Charge, at time.Time) int {
	l.slots.mu.Lock()
	r := l.slots.ruleOf(c.rule)
	l.slots.mu.Unlock()
	return r.drops.Add(at)
}
