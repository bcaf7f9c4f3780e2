package upstream

import "time"

// Ejection says when an endpoint that fails is passed over. It needs an
// endpoint beside it: where there is one alone none is ejected.
type Ejection struct {
	// Failures in a row, over all requests, eject an endpoint; zero means that
	// none is ever ejected.
	Failures int
	// Answers tells that an answer of 502, 503 or 504 is a failure of the
	// endpoint. Before servers that say so of something else, which clients may
	// choose, it is not.
	Answers bool
	// Base is how long the first ejection lasts. Each further one lasts longer
	// by as much, up to Most; each Base that passes without one makes the next
	// shorter again.
	Base, Most time.Duration
	// Percent of the endpoints, rounded down, but at least one, may be ejected
	// or unhealthy for another to be ejected.
	Percent int
}

// verdict is what an exchange shows of an endpoint.
type verdict uint8

const (
	// noVerdict: it was not asked, or the client did not give it the time.
	noVerdict verdict = iota
	// good: it answered.
	good
	// faulty: it answered that it, or what is behind it, cannot: 502, 503, 504.
	faulty
	// bad: it cannot be reached, was silent, or gave no answer that can be read.
	bad
)

// verdictOf returns what the answer to a request shows by its status.
func verdictOf(status int, req *Request) verdict {
	switch {
	case status == 504 && !req.Deadline.IsZero():
		return noVerdict // the client may not have given it the time
	case status >= 502 && status <= 504:
		return faulty
	}
	return good
}

// judge counts what an exchange showed of an endpoint, and of the upstream.
func (p *pool) judge(e *endpoint, v verdict, now time.Time) {
	switch {
	case v == good, v == faulty && !p.config.Ejection.Answers:
		e.failures = 0
	case v == faulty, v == bad:
		e.failures++
		if e.failures >= p.config.Ejection.Failures && p.config.Ejection.Failures > 0 {
			p.eject(e, now)
		}
	}
	if v != noVerdict && p.config.Breaker.Failures > 0 {
		p.circuit.judge(p, v, now)
	}
}

// eject has an endpoint passed over for a time, if enough others are left.
func (p *pool) eject(e *endpoint, now time.Time) {
	out := len(p.all) - len(p.ready)
	if e.ejected || e.unhealthy || e.removed || len(p.all) < 2 || out >= max(1, len(p.all)*p.config.Ejection.Percent/100) {
		return
	}
	if e.ejections > 0 {
		e.ejections -= min(e.ejections, int(now.Sub(e.until)/p.config.Ejection.Base))
	}
	e.ejections++
	p.ejections++
	e.ejected = true
	e.until = now.Add(min(p.config.Ejection.Base*time.Duration(e.ejections), p.config.Ejection.Most))
	p.tell(Change{Event: Ejected, Endpoint: e.addr, Until: e.until})
	p.rebuild(now)
}

// rebuild finds out which endpoints are ready. What was ejected comes back on
// probation: its next failure ejects it again.
func (p *pool) rebuild(now time.Time) {
	p.ready, p.readmit = p.ready[:0], time.Time{}
	for _, e := range p.all {
		if e.ejected && !now.Before(e.until) {
			e.ejected = false
			e.failures = max(0, p.config.Ejection.Failures-1)
			p.tell(Change{Event: Readmitted, Endpoint: e.addr})
		}
		switch {
		case e.ejected:
			if p.readmit.IsZero() || e.until.Before(p.readmit) {
				p.readmit = e.until
			}
		case !e.unhealthy:
			p.ready = append(p.ready, e)
		}
	}
}

// tell leaves a change to be told once the lock is given back.
func (p *pool) tell(c Change) {
	if p.config.OnChange != nil {
		p.news = append(p.news, c)
	}
}
