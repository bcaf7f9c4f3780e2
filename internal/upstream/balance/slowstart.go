package balance

import "time"

const (
	// fullWeight is the weight of an endpoint that is not in its slow start, and leastWeight the one with which a slow
	// start begins: requests must show whether the endpoint is well.
	fullWeight  = 1000
	leastWeight = fullWeight / 10
	// rampSteps is how often a weight changes in a slow start, at most.
	rampSteps = 200
)

// Starts are when the slow starts of endpoints that are ready began, by address: zero of one that is not in its slow
// start.
type Starts map[string]time.Time

// Starts returns the slow starts, for a set that replaces this one.
func (s *Set[C]) Starts() Starts {
	all := make(Starts, len(s.ready))
	for _, e := range s.ready {
		all[e.Addr] = e.since
	}
	return all
}

// Continue has the set go on with the slow starts of the set that it replaces. An endpoint that was not ready there, or
// not in it, starts slowly. It must be called before there are endpoints; without it those that come first have their
// full share.
func (s *Set[C]) Continue(starts Starts) { s.starts = starts }

// startOf returns when the slow start of a new endpoint began, or that it begins when the endpoint is ready.
func (s *Set[C]) startOf(addr string, o *Origin) (since time.Time, returns bool) {
	if o.Asked {
		return time.Time{}, true
	}
	since, isKnown := s.starts[addr]
	return since, !isKnown && s.starts != nil
}

// pass notes that the endpoint is passed over: when it is ready again its slow start begins anew.
func (e *Endpoint[C]) pass() { e.returns, e.since, e.weight = true, time.Time{}, fullWeight }

// ramp gives an endpoint that is ready its weight, and reports whether it is in its slow start.
func (s *Set[C]) ramp(e *Endpoint[C], now time.Time) bool {
	whole := s.policy.SlowStart
	if e.returns && whole > 0 {
		e.since = now
	}
	e.returns = false
	if e.since.IsZero() {
		return false
	}
	passed := max(0, now.Sub(e.since))
	if passed >= whole {
		e.since, e.weight = time.Time{}, fullWeight
		return false
	}
	e.weight = leastWeight + int(float64(fullWeight-leastWeight)*(float64(passed)/float64(whole)))
	s.dueBy(now.Add(min(whole-passed, max(whole/rampSteps, time.Millisecond))))
	return true
}

// chooseByWeight is the choice of Choose among at least two endpoints that are ready, some of which are in their slow
// starts. The first one is drawn by weight, so each gets its share however few requests there are. The second one is
// chosen instead if, with the request, it has no more exchanges for its weight than the first has without. For equal
// weights that is the choice of the less busy one.
func (s *Set[C]) chooseByWeight(tried *FailedEndpoints[C]) *Endpoint[C] {
	one := s.drawByWeight(nil, s.weight)
	other := s.drawByWeight(one, s.weight-one.weight)
	if (other.Busy+1)*one.weight <= one.Busy*other.weight {
		one, other = other, one
	}
	if s.hasRoom(one) {
		return one
	}
	if s.hasRoom(other) {
		return other
	}
	return s.leastBusy(s.ready, tried)
}

// drawByWeight returns one of the endpoints that are ready, but not the one given; weight is that of those together.
func (s *Set[C]) drawByWeight(but *Endpoint[C], weight int) (drawn *Endpoint[C]) {
	left := int(below(uint32(s.draw()>>32), uint32(weight)))
	for _, e := range s.ready {
		if e == but {
			continue
		}
		if drawn, left = e, left-e.weight; left < 0 {
			break
		}
	}
	return drawn
}
