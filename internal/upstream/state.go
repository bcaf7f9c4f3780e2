package upstream

import "time"

// Event is something that changed about an upstream.
type Event uint8

// The events.
const (
	// Ejected: an endpoint failed several times in a row and is passed over until Change.Until.
	Ejected Event = iota
	// Readmitted: the time is over.
	Readmitted
	// Unhealthy: an endpoint failed its health checks and is passed over.
	Unhealthy
	// Healthy: it passes them again.
	Healthy
	// AddressesChanged: the name of an endpoint stands for other addresses.
	AddressesChanged
	// LookupFailed: the name of an endpoint cannot be resolved; its last addresses stay in force.
	LookupFailed
	// CircuitOpened: no request is sent until Change.Until.
	CircuitOpened
	// CircuitProbed: a single request is sent to see whether there is an answer.
	CircuitProbed
	// CircuitClosed: requests are sent again.
	CircuitClosed
)

// String returns the name of the event.
func (e Event) String() string {
	return [...]string{
		"Ejected", "Readmitted", "Unhealthy", "Healthy", "AddressesChanged", "LookupFailed",
		"CircuitOpened", "CircuitProbed", "CircuitClosed",
	}[e]
}

// Change is one event. It is for operators: it names addresses.
type Change struct {
	Event Event
	// Endpoint is the address, or the name, that the event is about; empty where it is about the upstream.
	Endpoint string
	// Until is when an ejection or an open circuit ends.
	Until time.Time
	// Cause says why, where that is known.
	Cause string
}

// State is what an upstream is like at a moment.
type State struct {
	Endpoints []EndpointState
	// Unresolved are the names whose last lookup failed.
	Unresolved []Unresolved
	Circuit    CircuitState
	// Open and Idle count connections, those to endpoints that are no longer in force included.
	Open, Idle int
	// Pending requests wait for a connection.
	Pending int
	// Retried counts the requests that were tried once more, at another endpoint or after they may have arrived.
	Retried uint64
	// Ejections counts how often an endpoint was passed over because it failed.
	Ejections uint64
}

// Unresolved is a name that cannot be resolved at the moment.
type Unresolved struct {
	// Authority is the host and port of the base URL with the name.
	Authority string
	Cause     string
}

// EndpointStatus says whether an endpoint is asked.
type EndpointStatus uint8

// The statuses of endpoints.
const (
	EndpointReady EndpointStatus = iota
	EndpointEjected
	EndpointUnhealthy
)

// String returns the name of the status, as used in metrics.
func (s EndpointStatus) String() string { return [...]string{"Ready", "Ejected", "Unhealthy"}[s] }

// EndpointState is what an endpoint is like at a moment.
type EndpointState struct {
	// Address is dialled; Authority is the host and port of the base URL that it stands for.
	Address, Authority string
	Status             EndpointStatus
	// Until is when an ejection ends.
	Until time.Time
	// Cause says why its health checks fail, or failed last.
	Cause string
	// Failures in a row of exchanges.
	Failures int
	// Connections are open; InFlight of them have an exchange, streams included.
	Connections, InFlight int
}

// State returns what the upstream is like now.
func (c *Client) State() State {
	now := time.Now()
	p := c.pool
	p.mu.Lock()
	defer p.unlock()
	if !p.readmit.IsZero() && !now.Before(p.readmit) {
		p.rebuild(now)
		p.serve()
	}
	s := State{
		Endpoints: make([]EndpointState, 0, len(p.all)), Circuit: p.circuit.state,
		Open: p.open, Idle: p.idle, Pending: p.queue.length, Retried: c.retried.Load(), Ejections: p.ejections,
	}
	for _, o := range c.origins {
		if o.failed != nil {
			s.Unresolved = append(s.Unresolved, Unresolved{o.authority, o.failed.Error()})
		}
	}
	for _, e := range p.all {
		one := EndpointState{
			Address: e.addr, Authority: e.origin.authority, Cause: e.checked.cause,
			Failures: e.failures, Connections: e.open, InFlight: e.busy,
		}
		switch {
		case e.unhealthy:
			one.Status = EndpointUnhealthy
		case e.ejected:
			one.Status, one.Until = EndpointEjected, e.until
		}
		s.Endpoints = append(s.Endpoints, one)
	}
	return s
}
