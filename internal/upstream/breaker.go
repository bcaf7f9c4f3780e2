package upstream

import (
	"fmt"
	"time"
)

// Breaker says when a backend that gives no answers is not asked for a while.
type Breaker struct {
	// Failures in a row open the circuit: exchanges that got no answer, with
	// whichever endpoint. Zero means that it never opens. An answer closes it,
	// whatever its status: an error is the backend's own word.
	Failures int
	// Open is how long no request is sent then. After it one is; if that fails
	// too, the next time is twice as long, up to Most.
	Open, Most time.Duration
}

// CircuitState is the state of a circuit breaker.
type CircuitState uint8

// The states of a circuit.
const (
	// Closed: requests are sent.
	Closed CircuitState = iota
	// Open: requests are refused at once.
	Open
	// HalfOpen: one request is sent at a time, to see whether there is an answer.
	HalfOpen
)

// String returns the name of the state, as used in metrics.
func (s CircuitState) String() string { return [...]string{"Closed", "Open", "HalfOpen"}[s] }

// circuit is the state of a Breaker. The pool's lock guards it.
type circuit struct {
	state    CircuitState
	failures int // in a row
	lasts    time.Duration
	until    time.Time
	probes   int // so far
	probe    int // the one under way; zero where none is
}

// openError is why a request is refused at once.
type openError struct {
	failures int
	wait     time.Duration
}

func (e *openError) Error() string {
	return fmt.Sprintf("%d exchanges in a row failed; the next one is tried in %v", e.failures, e.wait)
}

// admit returns an error where the request may not be sent now.
func (c *circuit) admit(p *pool, try *attempt) error {
	if c.state == Closed {
		return nil
	}
	if c.state == Open && !try.now.Before(c.until) {
		c.state = HalfOpen
		p.tell(Change{Event: CircuitProbed})
	}
	if c.state == Open || c.probe != 0 {
		return &openError{c.failures, max(0, c.until.Sub(try.now))}
	}
	c.probes++
	c.probe, try.probe = c.probes, c.probes
	return nil
}

// judge counts what an exchange showed.
func (c *circuit) judge(p *pool, v verdict, now time.Time) {
	if v != bad {
		if c.state != Closed {
			p.tell(Change{Event: CircuitClosed})
		}
		*c = circuit{probes: c.probes}
		return
	}
	c.failures++
	switch {
	case c.state == HalfOpen:
		c.lasts = min(2*c.lasts, p.config.Breaker.Most)
	case c.state == Closed && c.failures >= p.config.Breaker.Failures:
		c.lasts = p.config.Breaker.Open
	default:
		return
	}
	c.state, c.until, c.probe = Open, now.Add(c.lasts), 0
	p.tell(Change{Event: CircuitOpened, Until: c.until})
}

// endProbe is for a probe that is over, for it may have shown nothing.
func (p *pool) endProbe(probe int) {
	p.mu.Lock()
	if p.circuit.probe == probe {
		p.circuit.probe = 0
	}
	p.unlock()
}
