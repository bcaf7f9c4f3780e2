package admin

import (
	"fmt"
	"time"
)

// Upstreams is the answer of /upstreams.
type Upstreams struct {
	Upstreams []Upstream `json:"upstreams"`
}

// Upstream is a backend as it is at the moment.
type Upstream struct {
	Name string `json:"name"`
	// Circuit is the state of its circuit breaker: Closed, Open or HalfOpen.
	Circuit string `json:"circuit"`
	// Connections are open, IdleConnections of them unused. PendingRequests wait for one.
	Connections     int `json:"connections"`
	IdleConnections int `json:"idleConnections"`
	PendingRequests int `json:"pendingRequests"`
	// Retries and Ejections count what happened so far.
	Retries   uint64     `json:"retries"`
	Ejections uint64     `json:"ejections"`
	Endpoints []Endpoint `json:"endpoints"`
	// Versions say, for each resource that was written since the start, what its ETags are worth.
	Versions []Versions `json:"versions,omitempty"`
	// UnresolvedNames are names of the configuration that cannot be resolved; their last addresses stay in use.
	UnresolvedNames []UnresolvedName `json:"unresolvedNames,omitempty"`
}

// Versions say whether a backend compares the versions that writes of a resource are pinned to.
type Versions struct {
	Resource string `json:"resource"`
	// ETags is Compared, Unclear, NotCompared, Weak, None or Varying. But for Compared only the gateway's locks are
	// sure to keep writers apart.
	ETags string `json:"etags"`
	// Since is when that was found out.
	Since time.Time `json:"since"`
}

// Varying says why objects have no ETags if reads of one object differ.
const Varying = "reads of one object differ although nobody writes it, as with a time in the answer: If-Match fails but for '*'"

// VaryingReads returns the resources whose reads differ without a write between them, so that their objects get no
// ETags.
func (u *Upstream) VaryingReads() []string {
	var all []string
	for _, v := range u.Versions {
		if v.ETags == "Varying" {
			all = append(all, v.Resource)
		}
	}
	return all
}

// UnresolvedName is a name that cannot be resolved at the moment.
type UnresolvedName struct {
	// Host is the host and port of its URL.
	Host    string `json:"host"`
	Message string `json:"message"`
}

// Endpoint is a server of a backend.
type Endpoint struct {
	// Address is dialled, Host is the host and port of its URL in the configuration.
	Address string `json:"address"`
	Host    string `json:"host"`
	// Status is Ready, Ejected or Unhealthy; only ready ones are asked, unless none is. One that was never tried is
	// Ready too: see LastAnswerTime.
	Status string `json:"status"`
	// EjectedUntil is when an ejection ends.
	EjectedUntil *time.Time `json:"ejectedUntil,omitempty"`
	// HealthCheck says why its health checks fail.
	HealthCheck string `json:"healthCheck,omitempty"`
	// IsChecked reports whether the last health check was passed.
	IsChecked bool `json:"isChecked,omitempty"`
	// LastAnswerTime is when it answered a request or a health check last; missing if it never did.
	LastAnswerTime *time.Time `json:"lastAnswerTime,omitempty"`
	// ConsecutiveFailures counts failures of requests.
	ConsecutiveFailures int `json:"consecutiveFailures"`
	Connections         int `json:"connections"`
	RequestsInFlight    int `json:"requestsInFlight"`
}

// ready is the status of an endpoint that is asked.
const ready = "Ready"

// IsTroubled reports whether the endpoint is not asked, or fails to answer. The only endpoint of an upstream is asked
// even then.
func (e *Endpoint) IsTroubled() bool {
	return e.Status != ready || e.ConsecutiveFailures > 0 || e.HealthCheck != ""
}

// IsKnown reports whether the endpoint is known to answer: a connection is open on which it did, or a health check was
// passed.
func (e *Endpoint) IsKnown() bool {
	return !e.IsTroubled() && e.LastAnswerTime != nil && (e.Connections > 0 || e.IsChecked)
}

// State says in words how the endpoint is. It is ready only if it is known to answer.
func (e *Endpoint) State() string {
	switch {
	case e.IsKnown():
		return ready
	case !e.IsTroubled() && e.LastAnswerTime != nil:
		return "Idle, answered last at " + e.LastAnswerTime.Format(time.RFC3339)
	case !e.IsTroubled() && e.Connections > 0:
		return "No answer yet"
	case !e.IsTroubled():
		return "Not tried yet"
	}
	state := e.Status
	if state == ready {
		state = "Failing"
	}
	if e.HealthCheck != "" {
		state += ": " + e.HealthCheck
	}
	switch n := e.ConsecutiveFailures; n {
	case 0:
		return state
	case 1:
		return state + ", its last request failed"
	default:
		return fmt.Sprintf("%s, its last %d requests failed", state, n)
	}
}
