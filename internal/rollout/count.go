package rollout

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Count says what a policy would have done to requests for which it is not enforced.
type Count struct {
	since        time.Time
	tried, would atomic.Int64

	mu         sync.Mutex
	operations map[[2]string]*Operation // of a document
}

// Add counts a request that the policy judged, and that it would have refused or changed if would is
// true.
func (c *Count) Add(would bool) {
	c.tried.Add(1)
	if would {
		c.would.Add(1)
	}
}

// Numbers are the numbers of a count: Would of Tried requests, since a time.
type Numbers struct {
	Would, Tried int64
	Since        time.Time
}

// Numbers returns what was counted.
func (c *Count) Numbers() Numbers {
	would := c.would.Load() // first: it is never the larger number
	return Numbers{would, c.tried.Load(), c.since}
}

// Count is the count of the plan.
func (p *Plan) Count() *Count { return p.count }

// Counts keep what was counted while policy sets come and go. They are safe for concurrent use.
type Counts struct {
	mu     sync.Mutex
	counts map[string]*Count
}

// Adopt lets the plans of a set that comes into force go on with the counts of plans that say the
// same of the same policies, and forgets all others.
func (c *Counts) Adopt(plans []*Plan, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[string]*Count, len(plans))
	for _, p := range plans {
		key := p.key()
		count := c.counts[key]
		if count == nil {
			count = p.count
			count.since = at
		}
		next[key], p.count = count, count
	}
	c.counts = next
}

func (p *Plan) key() string {
	selector := ""
	if p.selector != nil {
		selector = p.selector.String()
	}
	return fmt.Sprintf("%q %d %d %q %q %t", p.policy, p.until.UnixNano(), p.percent, p.namespaces, selector, p.isSilent)
}
