package telemetry

import (
	"sync"
	"time"
)

// A Sampler logs a repeated event once in a period, with the number of repetitions (EVT-1). The
// zero value is ready.
type Sampler struct {
	mu   sync.Mutex
	last map[string]sample
}

type sample struct {
	logged time.Time
	since  int // events that were not logged
}

const (
	samplePeriod = 10 * time.Second
	// maxSampled is how many kinds of events are kept apart. There are no more than policies; the kinds of
	// policies that are gone are forgotten with the others.
	maxSampled = 4096
)

// Allow notes an event of a kind. It returns how often the kind has come since it was logged, this time
// included, and whether to log it now.
func (s *Sampler) Allow(kind string, now time.Time) (times int, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || len(s.last) >= maxSampled {
		s.last = make(map[string]sample)
	}
	l := s.last[kind]
	if now.Sub(l.logged) < samplePeriod {
		l.since++
		s.last[kind] = l
		return l.since, false
	}
	s.last[kind] = sample{logged: now}
	return l.since + 1, true
}
