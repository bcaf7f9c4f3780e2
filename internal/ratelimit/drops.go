package ratelimit

import (
	"sync"
	"time"
)

// maxRetryAfter is the longest wait that Drops asks for, in seconds.
const maxRetryAfter = 32

// ShutdownRetryAfter is how many seconds clients of a gateway that is shutting down are asked to
// wait, as Kubernetes does.
const ShutdownRetryAfter = 5

// Drops computes how long clients that are turned away by overload have to wait: longer while drops
// go on, as the tracker of Kubernetes' priority and fairness does. It begins with 1 second. In the
// first drop of a second it looks back that many seconds: with three times as many drops it
// doubles, at most to 32 and at most once in the time that it asks for; with fewer drops than
// seconds it goes down by one. The zero value is ready for use, and safe for concurrent use.
type Drops struct {
	mu         sync.Mutex
	history    [maxRetryAfter]drops // of past seconds, each at its number modulo the length
	now        drops
	retryAfter int64
	doubled    int64 // the second in which it was last doubled
}

// drops is how many requests were dropped in a second of Unix time.
type drops struct{ second, count int64 }

// Add counts a drop, and returns after how many whole seconds the client may come again.
func (d *Drops) Add(at time.Time) int {
	second := at.Unix()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retryAfter == 0 {
		d.retryAfter = 1
	}
	if d.now.second == second {
		d.now.count++
		return int(d.retryAfter)
	}
	d.history[mod(d.now.second)] = d.now
	d.now = drops{second, 1}
	d.adapt(second)
	return int(d.retryAfter)
}

// adapt looks back at the seconds before this one.
func (d *Drops) adapt(second int64) {
	dropped := int64(0)
	for _, h := range d.history {
		if age := second - h.second; 0 < age && age <= d.retryAfter {
			dropped += h.count
		}
	}
	switch {
	case second-d.doubled >= d.retryAfter && dropped >= 3*d.retryAfter:
		d.retryAfter, d.doubled = min(2*d.retryAfter, maxRetryAfter), second
	case dropped < d.retryAfter && d.retryAfter > 1:
		d.retryAfter--
	}
}

func mod(second int64) int64 { return (second%maxRetryAfter + maxRetryAfter) % maxRetryAfter }
