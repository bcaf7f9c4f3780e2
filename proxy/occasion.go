package proxy

import (
	"sync"
	"time"
)

// occasions tell of an event that comes again and again once in a period, with how often it came since (EVT-1). The zero
// value is ready.
type occasions struct {
	mu   sync.Mutex
	last map[string]occasion
}

type occasion struct {
	told  time.Time
	since int // events that nobody was told of
}

const (
	occasionPeriod = 10 * time.Second
	// maxOccasions is how many kinds of events are told apart. There are no more than policies; those of earlier sets are
	// forgotten with the others.
	maxOccasions = 4096
)

// due notes an event of a kind. It returns how often the kind has come since it was told of, this time included, and
// whether to tell of it now.
func (o *occasions) due(kind string, now time.Time) (times int, tell bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || len(o.last) >= maxOccasions {
		o.last = make(map[string]occasion)
	}
	l := o.last[kind]
	if now.Sub(l.told) < occasionPeriod {
		l.since++
		o.last[kind] = l
		return l.since, false
	}
	o.last[kind] = occasion{told: now}
	return l.since + 1, true
}
