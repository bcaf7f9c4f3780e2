package ratelimit

import (
	"container/list"
	"time"
)

// Enter asks for a place among the requests that are served, under every rule that bounds them. It returns nil if there is
// one under each, which are then held until Leave; else the charge of a rule that has none, and nothing is held. Under
// a rule that only warns there is always one.
func (l *Limiter) Enter(c *Charges) (full *Charge) {
	if !c.flying {
		return nil
	}
	l.flights.mu.Lock()
	defer l.flights.mu.Unlock()
	return l.enter(c)
}

func (l *Limiter) enter(c *Charges) (full *Charge) {
	f := &l.flights
	for i := range c.list {
		charge := &c.list[i]
		if !charge.Rule.InFlight.bounds() || charge.flight != nil {
			continue
		}
		r := f.of(charge.rule)
		lane := f.lane(r, l.hasher.bytes(charge.Key))
		charge.Crowd = r.crowd(lane)
		if charge.Crowd != NoCrowd && !charge.warns() {
			f.forget(r, lane)
			l.leave(c)
			return charge
		}
		r.serve(lane)
		charge.flight, charge.lane = r, lane
	}
	return nil
}

// Leave gives back what Enter or Wait gave, if anything. It may be called again.
func (l *Limiter) Leave(c *Charges) {
	if !c.flying {
		return
	}
	l.flights.mu.Lock()
	defer l.flights.mu.Unlock()
	l.leave(c)
}

func (l *Limiter) leave(c *Charges) {
	for i := range c.list {
		if charge := &c.list[i]; charge.flight != nil {
			l.flights.leave(charge.vacate())
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
		l.flights.mu.Lock()
		l.flights.waiting--
		full = l.enter(c)
		l.flights.mu.Unlock()
	}
	return nil
}

// line puts a request into the queue of its key under the rule of a charge; nil if that is full.
func (l *Limiter) line(c *Charge) (turn chan struct{}, place *list.Element) {
	f := &l.flights
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.of(c.rule)
	lane := f.lane(r, l.hasher.bytes(c.Key))
	if lane.waiting.Len() >= r.bounds.QueueLength {
		f.forget(r, lane)
		return nil, nil
	}
	c.flight, c.lane = r, lane
	f.waiting++
	turn = make(chan struct{})
	place = lane.waiting.PushBack(turn)
	r.queue(lane)
	r.dispatch()
	return turn, place
}

// giveUp takes a request out of the queue, or gives back the place that it has just got.
func (l *Limiter) giveUp(c *Charge, turn chan struct{}, place *list.Element) {
	f := &l.flights
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	select {
	case <-turn:
		f.leave(c.vacate())
		return
	default:
	}
	r, lane := c.vacate()
	lane.waiting.Remove(place)
	if lane.turn != nil && lane.waiting.Len() == 0 {
		r.ready.Remove(lane.turn)
		lane.turn = nil
	}
	f.forget(r, lane)
}

// Waiting is how many requests wait now.
func (l *Limiter) Waiting() int {
	l.flights.mu.Lock()
	defer l.flights.mu.Unlock()
	return l.flights.waiting
}

// Dropped counts a request that found no place under the rule of a charge, and returns after how many seconds it may come
// again: more while that goes on.
func (l *Limiter) Dropped(c *Charge, at time.Time) int {
	l.flights.mu.Lock()
	r := l.flights.of(c.rule)
	l.flights.mu.Unlock()
	return r.drops.Add(at)
}
