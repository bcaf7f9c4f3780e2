package telemetry

import (
	"sync"
	"time"
)

// Sums reports what comes in bursts: the first at once, and the sum of all that follow, once in a while and after the
// last. It is safe for concurrent use. Kinds are few.
type Sums struct {
	tell func(kind string, sum int, why any)

	mu    sync.Mutex
	kinds map[string]*sum
}

type sum struct {
	untold int
	why    any // of the last of them
	timer  *time.Timer
}

// NewSums returns sums that are reported by tell, which must not wait.
func NewSums(tell func(kind string, sum int, why any)) *Sums {
	return &Sums{tell: tell, kinds: map[string]*sum{}}
}

// Add adds some of a kind.
func (s *Sums) Add(kind string, some int, why any) {
	s.mu.Lock()
	of := s.kinds[kind]
	if of != nil {
		of.untold, of.why = of.untold+some, why
		s.mu.Unlock()
		return
	}
	of = &sum{}
	of.timer = time.AfterFunc(samplePeriod, func() { s.settle(kind, of) })
	s.kinds[kind] = of
	s.mu.Unlock()
	s.tell(kind, some, why)
}

// settle reports what came since the last report of the kind, and waits for more if there was any.
func (s *Sums) settle(kind string, of *sum) {
	s.mu.Lock()
	if of.untold > 0 {
		of.timer.Reset(samplePeriod)
	} else if s.kinds[kind] == of {
		delete(s.kinds, kind)
	}
	s.mu.Unlock()
	s.tellOf(kind, of)
}

func (s *Sums) tellOf(kind string, of *sum) {
	s.mu.Lock()
	untold, why := of.untold, of.why
	of.untold = 0
	s.mu.Unlock()
	if untold > 0 {
		s.tell(kind, untold, why)
	}
}

// Close reports what has not been reported yet.
func (s *Sums) Close() {
	s.mu.Lock()
	kinds := s.kinds
	s.kinds = map[string]*sum{}
	s.mu.Unlock()
	for kind, of := range kinds {
		of.timer.Stop()
		s.tellOf(kind, of)
	}
}
