package balance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
)

// A Set is the endpoints of a backend.
type Set[C any] struct {
	policy  Policy
	hasRoom func(*Endpoint[C]) bool

	all       []*Endpoint[C] // in the order of their origins
	ready     []*Endpoint[C] // without the ejected and the unhealthy ones
	due       time.Time      // when rebuild is due: an ejection ends, or a weight changes; zero if it is not
	weight    int            // of all in ready, if one of them is in its slow start; else zero
	starts    Starts         // in the set that this one replaces
	ejections uint64         // so far
	random    uint64

	breaker circuit.Breaker
	retries budget
	changes []Change // to be reported
}

// New returns a set without endpoints. hasRoom reports whether an endpoint can take another exchange at once.
func New[C any](policy Policy, hasRoom func(*Endpoint[C]) bool) *Set[C] {
	return &Set[C]{
		policy: policy, hasRoom: hasRoom, random: rand.Uint64() | 1,
		breaker: circuit.New(policy.Breaker), retries: budget{RetryBudget: policy.Retries},
	}
}

// All returns the endpoints, which the caller must not change.
func (s *Set[C]) All() []*Endpoint[C] { return s.all }

// Ejections returns how often an endpoint was ejected so far.
func (s *Set[C]) Ejections() uint64 { return s.ejections }

// Circuit returns the state of the circuit breaker.
func (s *Set[C]) Circuit() circuit.State { return s.breaker.State() }

// Replace makes the addresses the endpoints of an origin, and returns the new ones and the ones that are no longer in
// the set. An endpoint that stays keeps its history.
func (s *Set[C]) Replace(o *Origin, addresses []string, now time.Time) (added, removed []*Endpoint[C]) {
	known := make(map[string]*Endpoint[C])
	for _, e := range s.all {
		if e.Origin == o {
			known[e.Addr] = e
		}
	}
	kept := slices.DeleteFunc(slices.Clone(s.all), func(e *Endpoint[C]) bool { return e.Origin == o })
	for _, addr := range addresses {
		e := known[addr]
		if e == nil {
			e = &Endpoint[C]{Addr: addr, Origin: o, weight: fullWeight}
			e.since, e.returns = s.startOf(addr, o)
			added = append(added, e)
		}
		delete(known, addr)
		kept = append(kept, e)
	}
	if len(added) == 0 && len(known) == 0 {
		return nil, nil
	}
	for _, e := range s.all {
		if known[e.Addr] == e {
			e.removed = true
			removed = append(removed, e)
		}
	}
	s.all = kept
	slices.SortStableFunc(s.all,
		func(a, b *Endpoint[C]) int { return cmp.Compare(a.Origin.Position, b.Origin.Position) })
	if !o.IsFixed {
		s.Report(Change{
			Event: AddressesChanged, Endpoint: o.Authority,
			Cause: fmt.Sprintf("%d added, %d removed, %d in all", len(added), len(removed), len(addresses)),
		})
	}
	s.rebuild(now)
	return added, removed
}

// Refresh readmits the endpoints whose ejections are over, and lets slow starts go on. It reports whether there was
// anything to do.
func (s *Set[C]) Refresh(now time.Time) bool {
	if s.due.IsZero() || now.Before(s.due) {
		return false
	}
	s.rebuild(now)
	return true
}

// rebuild finds out which endpoints are ready, and their weights. An endpoint comes back from an ejection on probation:
// its next failure ejects it again.
func (s *Set[C]) rebuild(now time.Time) {
	s.ready, s.due = s.ready[:0], time.Time{}
	isRamping, weight := false, 0
	for _, e := range s.all {
		if e.ejected && !now.Before(e.until) {
			e.ejected = false
			e.failures = max(0, s.policy.Ejection.Failures-1)
			s.Report(Change{Event: Readmitted, Endpoint: e.Addr})
		}
		switch {
		case e.ejected || e.unhealthy:
			e.pass()
			if e.ejected {
				s.dueBy(e.until)
			}
		default:
			s.ready = append(s.ready, e)
			if s.ramp(e, now) {
				isRamping = true
			}
			weight += e.weight
		}
	}
	s.weight = 0
	if isRamping {
		s.weight = weight
	}
}

// dueBy has rebuild called at a time at the latest.
func (s *Set[C]) dueBy(at time.Time) {
	if s.due.IsZero() || at.Before(s.due) {
		s.due = at
	}
}

// HasOther reports whether there is an endpoint that was not tried.
func (s *Set[C]) HasOther(tried *FailedEndpoints[C]) bool { return !tried.hasAll(s.all) }

// MayRetry takes a retry from the budget, and reports whether there was one.
func (s *Set[C]) MayRetry(now time.Time) bool { return s.retries.withdraw(now) }

// Report keeps a change until TakeChanges.
func (s *Set[C]) Report(c Change) { s.changes = append(s.changes, c) }

// HasChanges reports whether there are changes to be taken.
func (s *Set[C]) HasChanges() bool { return len(s.changes) > 0 }

// TakeChanges returns the changes since the last call.
func (s *Set[C]) TakeChanges() []Change {
	changes := s.changes
	s.changes = nil
	return changes
}
