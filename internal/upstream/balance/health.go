package balance

import "time"

// Check notes the result of a health check: an error if the endpoint failed it.
func (s *Set[C]) Check(e *Endpoint[C], err error, now time.Time) {
	if e.removed {
		return
	}
	k := &e.checks
	isFirst := !k.known
	k.known = true
	if err == nil {
		k.passed, k.failed = k.passed+1, 0
		e.heard = now
		switch {
		case !e.unhealthy:
			k.cause = ""
		case k.passed >= s.policy.Health.Healthy:
			k.cause, e.unhealthy = "", false
			s.Report(Change{Event: Healthy, Endpoint: e.Addr})
		}
	} else {
		k.passed, k.failed, k.cause = 0, k.failed+1, err.Error()
		if !e.unhealthy && (isFirst || k.failed >= s.policy.Health.Unhealthy) {
			e.unhealthy = true
			s.Report(Change{Event: Unhealthy, Endpoint: e.Addr, Cause: k.cause})
		}
	}
	s.rebuild(now)
}
