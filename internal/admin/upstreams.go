package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/status"
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
	// UnresolvedNames are those of the configuration that cannot be resolved; their last addresses stay in use.
	UnresolvedNames []UnresolvedName `json:"unresolvedNames,omitempty"`
}

// UnresolvedName is a name that cannot be resolved at the moment.
type UnresolvedName struct {
	// Host is the host and port of its URL.
	Host    string `json:"host"`
	Message string `json:"message"`
}

// Endpoint is a server of a backend.
type Endpoint struct {
	// Address is what is dialled, Host the host and port of the URL in the configuration that it stands for.
	Address string `json:"address"`
	Host    string `json:"host"`
	// Status is Ready, Ejected or Unhealthy; only ready ones are asked, unless none is.
	Status string `json:"status"`
	// EjectedUntil is when an ejection ends.
	EjectedUntil *time.Time `json:"ejectedUntil,omitempty"`
	// HealthCheck says why its health checks fail.
	HealthCheck string `json:"healthCheck,omitempty"`
	// ConsecutiveFailures are those of requests.
	ConsecutiveFailures int `json:"consecutiveFailures"`
	Connections         int `json:"connections"`
	RequestsInFlight    int `json:"requestsInFlight"`
}

// writeJSON answers with a page for people and programs alike.
func writeJSON(w http.ResponseWriter, page any) {
	body, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		writeError(w, status.Internal("cannot write the answer: %v", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
