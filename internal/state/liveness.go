package state

import (
	"math/rand/v2"
	"time"
)

// Liveness says how the death of a connection that carries a watch is noticed. Neither TCP nor a proxy on the way shows
// it: they may keep a connection that carries nothing any more. So the backend itself has to be heard. A watch of a
// collection in which nothing happens is silent, but the backend ends it when its time is over: a watch that has not
// ended by then is dead. So the times of it together bound how old what is known can be.
type Liveness struct {
	// Period is how long the backend is asked to keep a watch open at most, in whole seconds; 0 means 30 seconds.
	Period time.Duration
	// Grace is how much longer than it was asked to a backend may keep a watch open; 0 means 10 seconds.
	Grace time.Duration
	// Open is how long a backend may take to begin a watch; 0 means 15 seconds.
	Open time.Duration
}

// Together they notice a dead connection within 40 seconds.
const (
	defaultWatchPeriod = 30 * time.Second
	defaultWatchGrace  = 10 * time.Second
	defaultWatchOpen   = 15 * time.Second
)

func (l *Liveness) setDefaults() {
	setDefault(&l.Period, defaultWatchPeriod)
	setDefault(&l.Grace, defaultWatchGrace)
	setDefault(&l.Open, defaultWatchOpen)
}

// of returns the liveness for a source beside those that it was for already. If its objects must not be old, a dead
// watch has to be noticed before they are.
func (l Liveness) of(s *Source) Liveness {
	if s.MaxStaleness > 0 {
		half := max(s.MaxStaleness/2, time.Second)
		l.Period, l.Grace = min(l.Period, half), min(l.Grace, half)
	}
	return l
}

// period returns how long one watch is to last: not all of them end at once.
func (l Liveness) period() time.Duration {
	return max(l.Period-rand.N(l.Period/6+1), time.Second)
}
