package ratelimit

import (
	"math/bits"
	"time"
)

// pace is a limit in the terms of GCRA, in nanoseconds. interval is how far one request moves the theoretical arrival
// time of its bucket, tolerance how far that time may be ahead of now for a request of cost 1 to pass.
type pace struct {
	interval, tolerance int64
	most                int64 // the largest cost that can pass
}

// paceOf spreads the requests over the period. The interval is rounded up, so that rounding never admits a request
// more.
func paceOf(requests int, period time.Duration, burst int) pace {
	n := int64(max(requests, 1))
	interval := (int64(period) + n - 1) / n
	over, tolerance := bits.Mul64(uint64(interval), uint64(max(burst, 1)-1))
	if over != 0 || tolerance > uint64(forever) {
		tolerance = uint64(forever)
	}
	p := pace{interval: interval, tolerance: int64(tolerance)}
	p.most = 1 + p.tolerance/max(interval, 1)
	return p
}

// forever, 36 years, is the longest tolerance: sums with it and with the time since the start do not overflow, and a
// wait in seconds fits the 32 bits that a Status has for it.
const forever = int64(1) << 60

// decide reports whether a request of the given cost, at most p.most, fits at the time now into a bucket whose
// theoretical arrival time is tat. It returns that time as it is after the request, or how long the request has to
// wait.
func (p pace) decide(tat, now, cost int64) (after, wait int64) {
	tat = max(tat, now)
	further := (cost - 1) * p.interval
	if wait = tat + further - p.tolerance - now; wait > 0 {
		return tat, wait
	}
	return tat + further + p.interval, 0
}

// wholeSeconds is a wait as Retry-After says it: rounded up and at least 1, so that who waits that long is admitted.
func wholeSeconds(wait int64) int {
	return int(max((wait+int64(time.Second)-1)/int64(time.Second), 1))
}
