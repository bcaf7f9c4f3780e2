package balance

import (
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
)

// Policy says how a set deals with endpoints that fail. The zero value does nothing.
type Policy struct {
	Ejection Ejection
	Health   Thresholds
	Retries  RetryBudget
	// SlowStart is the time in which the share of an endpoint that comes back, or is added later, grows from a tenth of
	// a full one to a full one. Zero gives it a full one at once.
	SlowStart time.Duration
	Breaker   circuit.Policy
}

// Ejection says when an endpoint that fails is passed over. A single endpoint is never ejected.
type Ejection struct {
	// Failures in a row, over all requests, eject an endpoint; zero means that none is ever ejected.
	Failures int
	// Answers counts an answer of 502, 503 or 504 as a failure of the endpoint. It must not be set for servers that say
	// so of something else, which clients may choose.
	Answers bool
	// Base is how long the first ejection lasts. Each further one lasts longer by as much, up to Max; each Base that
	// passes without one makes the next shorter again.
	Base, Max time.Duration
	// Percent of the endpoints, rounded down, but at least one, may be ejected or unhealthy. If they are, no other
	// endpoint is ejected.
	Percent int
}

// Thresholds say what the results of health checks mean. The first check of an endpoint decides alone.
type Thresholds struct {
	// Unhealthy failures in a row make an endpoint unhealthy, Healthy successes in a row make it healthy again.
	Unhealthy, Healthy int
}

// RetryBudget bounds the requests that are sent a second time, so that retries cannot keep a backend down that is
// overloaded.
type RetryBudget struct {
	// Percent is how many requests may be sent again for each hundred that are sent, PerSecond how many in each second
	// beside them. If both are zero, none is.
	Percent, PerSecond int
}
