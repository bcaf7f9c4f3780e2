package ratelimit

import (
	"container/list"
	"sync"
)

// flights bounds how many requests are served at the same time. Its memory is bounded by the
// requests that are served or wait: a key without any takes none.
type flights struct {
	mu      sync.Mutex
	rules   map[uint64]*flight
	free    []*lane // of keys that have none any more
	waiting int
}

// flight holds the requests that are served or wait under one rule.
type flight struct {
	bounds InFlight
	served int
	lanes  map[uint64]*lane // by the hash of the key
	// ready are the lanes in which a request waits for nothing but a place among all keys. Each gets one in its turn, so that
	// a key with many requests does not keep the requests of others waiting.
	ready list.List
	drops Drops
}

// lane holds the requests of one key that are served or wait.
type lane struct {
	key     uint64
	served  int
	waiting list.List     // of the requests, as channels that are closed when their turn has come
	turn    *list.Element // in ready; nil if it is not there
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
	if r.bounds != rule.limit.InFlight {
		r.bounds = rule.limit.InFlight
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

// has reports whether one more may be served, among all keys and of this one.
func (r *flight) has() bool           { return r.bounds.Total == 0 || r.served < r.bounds.Total }
func (r *flight) hasFor(l *lane) bool { return r.bounds.PerKey == 0 || l.served < r.bounds.PerKey }

// crowd says whose requests leave no place for one more of the lane.
func (r *flight) crowd(l *lane) Crowd {
	switch {
	case !r.hasFor(l):
		return CrowdOfKey
	case !r.has():
		return CrowdInAll
	}
	return NoCrowd
}

func (r *flight) serve(l *lane) {
	r.served++
	l.served++
}

// queue puts a lane in which a request waits into the order of turns, if its key has room.
func (r *flight) queue(l *lane) {
	if l.turn == nil && l.waiting.Len() > 0 && r.hasFor(l) {
		l.turn = r.ready.PushBack(l)
	}
}

// dispatch lets waiting requests in, one of each key after the other.
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

// leave ends the serving of one request of a lane.
func (f *flights) leave(r *flight, l *lane) {
	r.served--
	l.served--
	r.queue(l)
	r.dispatch()
	f.forget(r, l)
}
