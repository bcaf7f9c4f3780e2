// Package circuit is a circuit breaker: it stops asking a server that gives no answers, and tries it again later with
// one request at a time. It has no clock and no lock: the caller says what time it is, and guards a Breaker.
package circuit

import (
	"fmt"
	"time"
)

// Policy says when a circuit opens, and for how long. The zero value never opens it.
type Policy struct {
	// Failures in a row open the circuit; zero means that it does not open for that.
	Failures int
	// Calls, if set, opens the circuit too when half of at least so many calls have failed within about Window.
	Calls  int
	Window time.Duration
	// Open is how long nothing is asked after that. Then one request is a probe; if it fails, the circuit is open
	// for twice the time, up to MaxOpen.
	Open, MaxOpen time.Duration
}

// State is the state of a circuit.
type State uint8

// The states of a circuit.
const (
	// Closed: requests are sent.
	Closed State = iota
	// Open: requests are refused at once.
	Open
	// HalfOpen: one request is sent at a time, to see whether there is an answer.
	HalfOpen
)

// String returns the name of the state, as used in metrics.
func (s State) String() string { return [...]string{"Closed", "Open", "HalfOpen"}[s] }

// Breaker is a circuit breaker.
type Breaker struct {
	policy   Policy
	state    State
	failures int // in a row
	recent   window
	openFor  time.Duration
	until    time.Time // the end of the time that the circuit is open for
	probes   int       // so far
	probe    int       // the number of the one under way, or zero
}

// New returns a breaker whose circuit is closed.
func New(policy Policy) Breaker { return Breaker{policy: policy} }

// OpenError is the reason why a request is refused at once.
type OpenError struct {
	Failures int           // in a row
	Wait     time.Duration // until a request may be sent
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%d exchanges in a row failed; the next one is tried in %v", e.Failures, e.Wait)
}

// State returns the state that the last call left the circuit in.
func (b *Breaker) State() State { return b.state }

// Until returns the end of the time that an open circuit refuses everything for.
func (b *Breaker) Until() time.Time { return b.until }

// IsOpen reports whether requests are refused at the time, whether or not a probe is under way.
func (b *Breaker) IsOpen(now time.Time) bool { return b.state == Open && now.Before(b.until) }

// Admit returns an *OpenError if no request may be sent now. If the request is a probe, its number is not zero, and
// EndProbe must be called after Succeeded, Failed, or neither of them.
func (b *Breaker) Admit(now time.Time) (probe int, err error) {
	if b.state == Closed {
		return 0, nil
	}
	if b.state == Open && !now.Before(b.until) {
		b.state = HalfOpen
	}
	if b.state == Open || b.probe != 0 {
		return 0, &OpenError{b.failures, max(0, b.until.Sub(now))}
	}
	b.probes++
	b.probe = b.probes
	return b.probe, nil
}

// Succeeded notes that a request was answered, which closes the circuit.
func (b *Breaker) Succeeded(now time.Time) {
	b.failures = 0
	b.recent.add(&b.policy, now, false)
	if b.state != Closed {
		*b = Breaker{policy: b.policy, probes: b.probes}
	}
}

// Failed notes that a request was not answered.
func (b *Breaker) Failed(now time.Time) {
	b.failures++
	b.recent.add(&b.policy, now, true)
	switch {
	case b.state == HalfOpen:
		b.openFor = min(2*b.openFor, b.policy.MaxOpen)
	case b.state == Closed && b.isTripped():
		b.openFor = b.policy.Open
	default:
		return
	}
	b.state, b.until, b.probe = Open, now.Add(b.openFor), 0
}

// isTripped reports whether there are enough failures to open the circuit.
func (b *Breaker) isTripped() bool {
	if p := &b.policy; p.Failures > 0 && b.failures >= p.Failures {
		return true
	}
	calls, failed := b.recent.sum()
	return b.policy.Calls > 0 && calls >= b.policy.Calls && 2*failed >= calls
}

// EndProbe lets another request be the probe if this one has shown nothing.
func (b *Breaker) EndProbe(probe int) {
	if b.probe == probe {
		b.probe = 0
	}
}
