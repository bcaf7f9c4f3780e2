package ratelimit

import "time"

// pace is a limit in the terms of GCRA, in nanoseconds. interval is how far one request moves the theoretical arrival
// time of its bucket, tolerance how far that time may be ahead of now.
type pace struct{ interval, tolerance int64 }

// paceOf spreads the requests over the period. The interval is rounded up, so that rounding never admits a request more.
func paceOf(requests int, period time.Duration, burst int) pace {
	n := int64(max(requests, 1))
	interval := (int64(period) + n - 1) / n
	return pace{interval: interval, tolerance: interval * int64(max(burst, 1)-1)}
}

// decide tells whether a request fits at the time now into a bucket whose theoretical arrival time is tat. It returns
// that time as it is after the request, or how long the request has to wait.
func (p pace) decide(tat, now int64) (after, wait int64) {
	tat = max(tat, now)
	if wait = tat - p.tolerance - now; wait > 0 {
		return tat, wait
	}
	return tat + p.interval, 0
}

// wholeSeconds is a wait as Retry-After says it: rounded up and at least 1, so that who waits that long is admitted.
func wholeSeconds(wait int64) int {
	return int(max((wait+int64(time.Second)-1)/int64(time.Second), 1))
}
