package upstream

import (
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// State describes an upstream at a moment.
type State struct {
	Endpoints []EndpointState
	// Unresolved are the names whose last lookup failed.
	Unresolved []Unresolved
	Circuit    circuit.State
	// Open and Idle count connections; the ones to endpoints that are no longer in force are included.
	Open, Idle int
	// Pending requests wait for a connection.
	Pending int
	// Retried counts the requests that were tried once more, at another endpoint or after they may have arrived.
	Retried uint64
	// Ejections counts how often an endpoint was passed over because it failed.
	Ejections uint64
	// Unended counts the writes that were given up and may still be carried out: they were not watched, or not to their
	// end.
	Unended uint64
	// Surplus counts the connections on which bytes came that were not asked for: behind an answer, or before a
	// request.
	Surplus uint64
}

// Unresolved is a name that cannot be resolved at the moment.
type Unresolved struct {
	// Authority is the host and port of the base URL with the name.
	Authority string
	Cause     string
}

// EndpointState describes an endpoint at a moment.
type EndpointState struct {
	// Address is dialled; Authority is the host and port of its base URL.
	Address, Authority string
	Status             balance.EndpointStatus
	// Until is when an ejection ends.
	Until time.Time
	// Cause says why its health checks fail, or failed last if it is unhealthy still; IsWell that the last one was
	// passed.
	Cause  string
	IsWell bool
	// Heard is when it answered last; zero if it never did.
	Heard time.Time
	// Failures in a row of exchanges.
	Failures int
	// Connections are open; InFlight exchanges are in progress on them, streams included.
	Connections, InFlight int
}

// State describes the upstream now.
func (c *Client) State() State {
	p := c.pool
	p.mu.Lock()
	defer p.unlock()
	if p.set.Refresh(time.Now()) {
		p.serve()
	}
	endpoints := p.set.All()
	s := State{
		Endpoints: make([]EndpointState, 0, len(endpoints)), Circuit: p.set.Circuit(), Open: p.slots.open,
		Idle:    p.slots.idle,
		Pending: p.queue.length, Retried: c.retried.Load(), Ejections: p.set.Ejections(),
		Surplus: c.transport.surplus.Load(), Unended: c.transport.unended.Load(),
	}
	for _, o := range c.origins {
		if o.failed != nil {
			s.Unresolved = append(s.Unresolved, Unresolved{o.Authority, o.failed.Error()})
		}
	}
	for _, e := range endpoints {
		one := EndpointState{
			Address: e.Addr, Authority: e.Origin.Authority, Cause: e.Cause(), IsWell: e.IsWell(), Heard: e.Heard(),
			Failures:    e.Failures(),
			Connections: e.Conns.open, InFlight: e.Busy,
		}
		one.Status, one.Until = e.Status()
		s.Endpoints = append(s.Endpoints, one)
	}
	return s
}
