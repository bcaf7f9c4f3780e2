package balance

import (
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
)

// Outcome is the result of an exchange, as far as it depends on the endpoint.
type Outcome uint8

const (
	// Inconclusive: the endpoint was not asked, or the client did not give it the time.
	Inconclusive Outcome = iota
	// Answered: it answered.
	Answered
	// Unavailable: it answered that it, or something behind it, cannot: 502, 503, 504.
	Unavailable
	// Failed: it cannot be reached, was silent, or gave no answer that can be read.
	Failed
)

// Observe counts the outcome of an exchange for its endpoint and for the circuit breaker.
func (s *Set[C]) Observe(e *Endpoint[C], o Outcome, now time.Time) {
	if o == Answered || o == Unavailable {
		e.heard = now
	}
	switch {
	case o == Answered, o == Unavailable && !s.policy.Ejection.Answers:
		e.failures = 0
	case o == Unavailable, o == Failed:
		e.failures++
		if e.failures >= s.policy.Ejection.Failures && s.policy.Ejection.Failures > 0 {
			s.eject(e, now)
		}
	}
	if o == Inconclusive || s.policy.Breaker.Failures <= 0 {
		return
	}
	before := s.breaker.State()
	if o == Failed {
		s.breaker.Failed(now)
	} else {
		s.breaker.Succeeded(now)
	}
	s.reportCircuit(before)
}

// Admit returns a *circuit.OpenError if no request may be sent now. A request that is admitted earns its share of the
// retries. If it is a probe of the circuit, its number is not zero, and EndProbe must be called.
func (s *Set[C]) Admit(now time.Time) (probe int, err error) {
	before := s.breaker.State()
	if probe, err = s.breaker.Admit(now); err == nil {
		s.retries.deposit()
	}
	s.reportCircuit(before)
	return probe, err
}

// EndProbe lets another request be the probe of the circuit if this one has shown nothing.
func (s *Set[C]) EndProbe(probe int) { s.breaker.EndProbe(probe) }

// reportCircuit reports a state of the circuit that is not the one before.
func (s *Set[C]) reportCircuit(before circuit.State) {
	now := s.breaker.State()
	if now == before {
		return
	}
	switch now {
	case circuit.Open:
		s.Report(Change{Event: CircuitOpened, Until: s.breaker.Until()})
	case circuit.HalfOpen:
		s.Report(Change{Event: CircuitProbed})
	default:
		s.Report(Change{Event: CircuitClosed})
	}
}
