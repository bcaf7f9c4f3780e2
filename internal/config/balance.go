package config

import (
	"fmt"
	"strings"
)

// Balance is how requests are shared among the servers of a backend, and what becomes of servers that fail.
type Balance struct {
	// ResolvePeriodSeconds is how often the host names of Endpoints are looked up; each of their addresses is a server.
	// 0 means that a name is one server, looked up for each connection, as localhost always is.
	ResolvePeriodSeconds Seconds `json:"resolvePeriodSeconds"`
	// MaxConnectionsPerEndpoint is the largest number of connections to one server; 0 means no bound but
	// MaxConnections.
	MaxConnectionsPerEndpoint int32 `json:"maxConnectionsPerEndpoint"`
	// MaxPendingRequests is how many requests may wait for a connection at a time.
	MaxPendingRequests int32 `json:"maxPendingRequests"`
	// Ejection is when a server that fails is passed over.
	Ejection Ejection `json:"ejection"`
	// HealthCheck is how servers are asked whether they are well; nil means that they are not.
	HealthCheck *HealthCheck `json:"healthCheck"`
	// Retries bounds the reads that are sent again.
	Retries Retries `json:"retries"`
	// SlowStartSeconds is the time in which a server that comes back, or is added later, takes up its full share of the
	// requests, beginning with a tenth; 0 means that it gets its full share at once.
	SlowStartSeconds Seconds `json:"slowStartSeconds"`
	// CircuitBreaker is when a backend is not asked for a while; nil means never.
	CircuitBreaker *CircuitBreaker `json:"circuitBreaker"`
}

// Ejection is when a server that fails is passed over. One that has no other beside it never is.
type Ejection struct {
	// ConsecutiveFailures are how often it must fail in a row: it cannot be reached, is silent, breaks off, gives no
	// valid HTTP, or, of a plain backend, answers 502, 503 or 504. 0 means that no server is ever passed over.
	ConsecutiveFailures int32 `json:"consecutiveFailures"`
	// BaseSeconds is how long the first ejection lasts. Each further one lasts longer by as much, up to MaxSeconds.
	BaseSeconds Seconds `json:"baseSeconds"`
	MaxSeconds  Seconds `json:"maxSeconds"`
	// MaxEjectedPercent is the share of the servers, but at least one, that may be passed over.
	MaxEjectedPercent int32 `json:"maxEjectedPercent"`
}

// HealthCheck is a GET that every server is asked.
type HealthCheck struct {
	// Path is the path of the probe, such as /readyz.
	Path string `json:"path"`
	// PeriodSeconds is the time between the starts of two checks, TimeoutSeconds that in which a server has to answer.
	PeriodSeconds  Seconds `json:"periodSeconds"`
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
	// UnhealthyThreshold failures in a row make a server unhealthy, HealthyThreshold successes healthy again.
	UnhealthyThreshold int32 `json:"unhealthyThreshold"`
	HealthyThreshold   int32 `json:"healthyThreshold"`
	// ExpectedStatus is the status of a success; 0 means all from 200 to 399.
	ExpectedStatus int32 `json:"expectedStatus"`
}

// Retries bounds the reads that are sent again because the first time no byte of an answer came.
type Retries struct {
	// BudgetPercent is how many of a hundred requests may be sent again, MinPerSecond how many in a second in any case.
	BudgetPercent int32 `json:"budgetPercent"`
	MinPerSecond  int32 `json:"minPerSecond"`
}

// CircuitBreaker is when a backend is not asked for a while.
type CircuitBreaker struct {
	// ConsecutiveFailures is how many requests in a row must have got no answer. An error is an answer.
	ConsecutiveFailures int32 `json:"consecutiveFailures"`
	// OpenSeconds is how long no request is sent then. After that one is; if it fails too the next
	// time is twice as long, up to MaxOpenSeconds.
	OpenSeconds    Seconds `json:"openSeconds"`
	MaxOpenSeconds Seconds `json:"maxOpenSeconds"`
}

func defaultBalance() Balance {
	return Balance{
		ResolvePeriodSeconds: 30,
		MaxPendingRequests:   4096,
		Ejection:             Ejection{ConsecutiveFailures: 5, BaseSeconds: 10, MaxSeconds: 300, MaxEjectedPercent: 50},
		Retries:              Retries{BudgetPercent: 20, MinPerSecond: 10},
	}
}

// setDefaults sets the defaults of fields that the file leaves out.
func (h *HealthCheck) setDefaults() {
	orElse(&h.PeriodSeconds, 10)
	orElse(&h.TimeoutSeconds, 2)
	orElse(&h.UnhealthyThreshold, 3)
	orElse(&h.HealthyThreshold, 2)
}

// setDefaults sets the defaults of fields that the file leaves out.
func (b *CircuitBreaker) setDefaults() {
	orElse(&b.ConsecutiveFailures, 20)
	orElse(&b.OpenSeconds, 5)
	orElse(&b.MaxOpenSeconds, max(60, b.OpenSeconds))
}

func orElse[N int32 | Seconds](value *N, otherwise N) {
	if *value == 0 {
		*value = otherwise
	}
}

func (v *validator) balance(path string, b *Balance) {
	v.within(path+".resolvePeriodSeconds", b.ResolvePeriodSeconds, 0, maxSeconds)
	between(v, path+".maxConnectionsPerEndpoint", b.MaxConnectionsPerEndpoint, 0, 1<<20)
	between(v, path+".maxPendingRequests", b.MaxPendingRequests, 1, 1<<20)

	e, at := &b.Ejection, path+".ejection"
	between(v, at+".consecutiveFailures", e.ConsecutiveFailures, 0, 1000)
	v.within(at+".baseSeconds", e.BaseSeconds, 1, maxSeconds)
	v.within(at+".maxSeconds", e.MaxSeconds, 1, maxSeconds)
	v.atLeast(at+".maxSeconds", e.MaxSeconds, "baseSeconds", e.BaseSeconds)
	between(v, at+".maxEjectedPercent", e.MaxEjectedPercent, 1, 100)

	between(v, path+".retries.budgetPercent", b.Retries.BudgetPercent, 0, 100)
	between(v, path+".retries.minPerSecond", b.Retries.MinPerSecond, 0, 10_000)

	v.within(path+".slowStartSeconds", b.SlowStartSeconds, 0, maxSeconds)

	if h, at := b.HealthCheck, path+".healthCheck"; h != nil {
		h.setDefaults()
		v.check(at+".path", checkPathProblem(h.Path))
		v.within(at+".periodSeconds", h.PeriodSeconds, 1, maxSeconds)
		v.within(at+".timeoutSeconds", h.TimeoutSeconds, 1, maxSeconds)
		v.atLeast(at+".periodSeconds", h.PeriodSeconds, "timeoutSeconds", h.TimeoutSeconds)
		between(v, at+".unhealthyThreshold", h.UnhealthyThreshold, 1, 100)
		between(v, at+".healthyThreshold", h.HealthyThreshold, 1, 100)
		if h.ExpectedStatus != 0 {
			between(v, at+".expectedStatus", h.ExpectedStatus, 200, 599)
		}
	}
	if c, at := b.CircuitBreaker, path+".circuitBreaker"; c != nil {
		c.setDefaults()
		between(v, at+".consecutiveFailures", c.ConsecutiveFailures, 1, 100_000)
		v.within(at+".openSeconds", c.OpenSeconds, 1, maxSeconds)
		v.within(at+".maxOpenSeconds", c.MaxOpenSeconds, 1, maxSeconds)
		v.atLeast(at+".maxOpenSeconds", c.MaxOpenSeconds, "openSeconds", c.OpenSeconds)
	}
}

// checkPathProblem says what is wrong with the path of a health check.
func checkPathProblem(path string) string {
	switch {
	case path == "":
		return "Required value: must be a path such as '/readyz'"
	case !strings.HasPrefix(path, "/"):
		return fmt.Sprintf("must begin with '/', not '%s'", path)
	case strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == '#' || c > '~' }):
		return "must have only printable ASCII characters, without spaces and '#'"
	}
	return ""
}
