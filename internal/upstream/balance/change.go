package balance

import "time"

// Event is a kind of change.
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
	// Endpoint is the address, or the name, that the event concerns; empty if it concerns the
	// backend.
	Endpoint string
	// Until is when an ejection or an open circuit ends.
	Until time.Time
	// Cause says why, if that is known.
	Cause string
}
