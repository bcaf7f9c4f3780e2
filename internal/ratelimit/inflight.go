package ratelimit

import (
	"container/list"
	"sync"
	"time"
)

// flights bounds how many requests are served at the same time. Its memory is bounded by those that are served and those
// that wait: a key that has neither takes none.
type flights struct {
	mu      sync.Mutex
	rules   map[uint64]*flight
	free    []*lane // of keys that have none any more
	waiting int
}

// flight is what is served and waits under one rule.
type flight struct {
	bounds InFlight
	served int
	lanes  map[uint64]*lane // by the hash of the key
	// ready are the lanes in which a request waits for nothing but a place among all keys. Each gets one in its turn, so that
	// a key with many requests does not keep those of others waiting.
	ready list.List
	drops Drops
}

// lane is what is served and waits of one key.
type lane struct {
	key     uint64
	served  int
	waiting list.List     // of the requests, as channels that are closed when their turn has come
	turn    *list.Element // in ready; nil where it is not there
}

// maxIdleFlights is how many rules are known before those are forgotten under which nothing is served.
const maxIdleFlights = 1024

// maxFreeLanes is how many lanes are kept for other keys.
const maxFreeLanes = 4096

// of returns what is known of a rule, whose bounds may be new.
func (f *flights) of(rule *compiled) *flight {
	r := f.rules[rule.flightID]
	if r == nil {
		if len(f.rules) >= maxIdleFlights {
			for id, other := range f.rules {
				if len(other.lanes) == 0 {
					delete(f.rules, id)
				}
			}
		}
		r = &flight{lanes: map[uint64]*lane{}}
		if f.rules == nil {
			f.rules = map[uint64]*flight{}
		}
		f.rules[rule.flightID] = r
	}
	if r.bounds != rule.InFlight {
		r.bounds = rule.InFlight
		for _, l := range r.lanes {
			r.queue(l)
		}
		r.dispatch()
	}
	return r
}

// lane returns the lane of a key.
func (f *flights) lane(r *flight, key uint64) *lane {
	l := r.lanes[key]
	if l != nil {
		return l
	}
	if n := len(f.free); n > 0 {
		l, f.free = f.free[n-1], f.free[:n-1]
	} else {
		l = &lane{}
	}
	l.key = key
	r.lanes[key] = l
	return l
}

// forget gives the memory of a lane back in which nothing is left.
func (f *flights) forget(r *flight, l *lane) {
	if l.served > 0 || l.waiting.Len() > 0 {
		return
	}
	delete(r.lanes, l.key)
	if len(f.free) < maxFreeLanes {
		f.free = append(f.free, l)
	}
}

// has tells whether one more may be served, among all keys and of this one.
func (r *flight) has() bool           { return r.bounds.Total == 0 || r.served < r.bounds.Total }
func (r *flight) hasFor(l *lane) bool { return r.bounds.PerKey == 0 || l.served < r.bounds.PerKey }

func (r *flight) serve(l *lane) {
	r.served++
	l.served++
}

// queue puts a lane in which a request waits where it gets its turn, if its key has room.
func (r *flight) queue(l *lane) {
	if l.turn == nil && l.waiting.Len() > 0 && r.hasFor(l) {
		l.turn = r.ready.PushBack(l)
	}
}

// dispatch lets those that wait in, one of each key after the other.
func (r *flight) dispatch() {
	for r.has() && r.ready.Len() > 0 {
		l := r.ready.Remove(r.ready.Front()).(*lane)
		l.turn = nil
		if !r.hasFor(l) || l.waiting.Len() == 0 {
			continue
		}
		r.serve(l)
		close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
		r.queue(l)
	}
}

// leave ends what one request had been served under a rule.
func (f *flights) leave(c *Charge) {
	r, l := c.flight, c.lane
	c.flight, c.lane = nil, nil
	r.served--
	l.served--
	r.queue(l)
	r.dispatch()
	f.forget(r, l)
}

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
		charge.CrowdedInAll = r.hasFor(lane)
		charge.Crowded = !charge.CrowdedInAll || !r.has()
		if charge.Crowded && charge.Rule.Mode != Warn {
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
			l.flights.leave(charge)
		}
	}
}

// Wait waits for the place that Enter did not find under the rule of a charge, and for those under the others, until the
// given time at the latest, or until gone is closed. A request holds no place while it waits for another. Wait returns nil
// where it has all of them, else the charge whose queue is full, or in whose queue the time passed.
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

// line puts a request into the queue of its key under the rule of a charge; nil where that is full.
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
		f.leave(c)
		return
	default:
	}
	r, lane := c.flight, c.lane
	c.flight, c.lane = nil, nil
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
