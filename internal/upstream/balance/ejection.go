package balance

import "time"

// eject has an endpoint passed over for a time, if enough others are left.
func (s *Set[C]) eject(e *Endpoint[C], now time.Time) {
	policy, out := &s.policy.Ejection, len(s.all)-len(s.ready)
	if e.ejected || e.unhealthy || e.removed || len(s.all) < 2 || out >= max(1, len(s.all)*policy.Percent/100) {
		return
	}
	if e.ejections > 0 {
		e.ejections -= min(e.ejections, int(now.Sub(e.until)/policy.Base))
	}
	e.ejections++
	s.ejections++
	e.ejected = true
	e.until = now.Add(min(policy.Base*time.Duration(e.ejections), policy.Max))
	s.Report(Change{Event: Ejected, Endpoint: e.Addr, Until: e.until})
	s.rebuild(now)
}
