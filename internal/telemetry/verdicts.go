package telemetry

import "sync/atomic"

// PolicyCounters have the counters of the policies of a set, so that [Telemetry.PolicyDecided] need
// not look them up for each decision. They are safe for concurrent use.
type PolicyCounters struct {
	telemetry *Telemetry
	all       []policyCounter
}

// policyCounter has the counters of a policy. They are looked up when it decides first, so that a
// policy that decides about no request has no series.
type policyCounter struct {
	policy   string
	verdicts atomic.Pointer[[]verdictCounter] // of the verdicts so far
	cost     atomic.Pointer[atomic.Int64]
}

type verdictCounter struct {
	verdict string
	count   *atomic.Int64
}

// PolicyCounters returns the counters of policies with these names.
func (t *Telemetry) PolicyCounters(policies []string) *PolicyCounters {
	all := make([]policyCounter, len(policies))
	for i, name := range policies {
		all[i].policy = name
	}
	return &PolicyCounters{t, all}
}

// Decided is [Telemetry.PolicyDecided] for the policy at a place of the set. If another policy is
// there, the policy is of another set, and found by its name.
func (c *PolicyCounters) Decided(place int, policy, verdict string, cost int64) {
	if !isMeasured {
		return
	}
	if place >= len(c.all) || c.all[place].policy != policy {
		c.telemetry.PolicyDecided(policy, verdict, cost)
		return
	}
	p := &c.all[place]
	p.of(&c.telemetry.events, verdict).Add(1)
	if cost > 0 {
		p.spent(&c.telemetry.events).Add(cost)
	}
}

// of returns the counter of a verdict.
func (p *policyCounter) of(e *events, verdict string) *atomic.Int64 {
	var known []verdictCounter
	if all := p.verdicts.Load(); all != nil {
		known = *all
	}
	for i := range known {
		if known[i].verdict == verdict {
			return known[i].count
		}
	}
	found := verdictCounter{verdict, e.verdicts.counter(p.policy, verdict, "")}
	more := append([]verdictCounter{found}, known...)
	p.verdicts.Store(&more) // if another request does the same, one of the two looks it up again
	return found.count
}

// spent returns the counter of units of cost.
func (p *policyCounter) spent(e *events) *atomic.Int64 {
	if known := p.cost.Load(); known != nil {
		return known
	}
	found := e.costs.counter(p.policy, "", "")
	p.cost.Store(found)
	return found
}
