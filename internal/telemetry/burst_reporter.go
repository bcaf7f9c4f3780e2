package telemetry

import (
	"sync"
	"time"
)

// BurstReporter reports what comes in bursts: the first at once, and the sum of all that follow, once in a while and
// after the last. It is safe for concurrent use. Kinds are few.
type BurstReporter struct {
	tell func(kind string, sum int, why any)

	mu    sync.Mutex
	kinds map[string]*burst
}

type burst struct {
	untold int
	why    any // of the last of them
	timer  *time.Timer
}

// NewBurstReporter returns a reporter that reports by tell, which must not wait.
func NewBurstReporter(tell func(kind string, sum int, why any)) *BurstReporter {
	return &BurstReporter{tell: tell, kinds: map[string]*burst{}}
}

// Add adds some of a kind.
func (r *BurstReporter) Add(kind string, some int, why any) {
	r.mu.Lock()
	of := r.kinds[kind]
	if of != nil {
		of.untold, of.why = of.untold+some, why
		r.mu.Unlock()
		return
	}
	of = &burst{}
	of.timer = time.AfterFunc(samplePeriod, func() { r.reportRest(kind, of) })
	r.kinds[kind] = of
	r.mu.Unlock()
	r.tell(kind, some, why)
}

// reportRest reports what came since the last report of the kind, and waits for more if there was any.
func (r *BurstReporter) reportRest(kind string, of *burst) {
	r.mu.Lock()
	if of.untold > 0 {
		of.timer.Reset(samplePeriod)
	} else if r.kinds[kind] == of {
		delete(r.kinds, kind)
	}
	r.mu.Unlock()
	r.tellOf(kind, of)
}

func (r *BurstReporter) tellOf(kind string, of *burst) {
	r.mu.Lock()
	untold, why := of.untold, of.why
	of.untold = 0
	r.mu.Unlock()
	if untold > 0 {
		r.tell(kind, untold, why)
	}
}

// Close reports what has not been reported yet.
func (r *BurstReporter) Close() {
	r.mu.Lock()
	kinds := r.kinds
	r.kinds = map[string]*burst{}
	r.mu.Unlock()
	for kind, of := range kinds {
		of.timer.Stop()
		r.tellOf(kind, of)
	}
}
