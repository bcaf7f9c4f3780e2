package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
)

// The defaults of a Config.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultAnswerTimeout  = 60 * time.Second
	DefaultBodyTimeout    = 60 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
	DefaultPing           = 30 * time.Second
	DefaultPingAnswer     = 15 * time.Second
	DefaultMaxWait        = time.Second
	DefaultMaxConns       = 4096
	DefaultMaxPending     = 4096
	DefaultHeadBytes      = 16 << 10
	DefaultRetryAfter     = 1

	DefaultRetryPercent     = 20
	DefaultRetriesPerSecond = 10

	DefaultEjection          = 10 * time.Second
	DefaultMaxEjection       = 5 * time.Minute
	DefaultMaxEjectedPercent = 50
	DefaultOpen              = 5 * time.Second
	DefaultMaxOpen           = time.Minute
	DefaultCheckPeriod       = 10 * time.Second
	DefaultCheckTimeout      = 2 * time.Second
)

// Config describes one backend.
type Config struct {
	// Endpoints are base URLs (http://host:port), all of one scheme and without a path.
	Endpoints []string
	// ResolvePeriod is how often the host names of Endpoints are looked up, each of whose addresses is an endpoint
	// then. Zero means that a name is one endpoint, looked up for each connection, as localhost always is.
	ResolvePeriod time.Duration
	// Resolver looks names up; nil means the system's.
	Resolver Resolver
	// Protocol is that of the connections.
	Protocol Protocol
	// TLS says how connections to endpoints of the scheme https are made, asked for each of them; nil means the
	// defaults. Renew follows a change.
	TLS      func() *tls.Config
	Timeouts Timeouts
	// Watches says that the backend is an API server: on connections of HTTP/2 it is asked by PING while it is silent.
	// It is nil for other backends.
	Watches *Watches
	Limits  Limits
	// Ejection, HealthCheck, Retries and Breaker deal with endpoints that fail. Their zero values do nothing, except
	// for nil Retries: the default.
	Ejection    balance.Ejection
	HealthCheck *HealthCheck
	Retries     *balance.RetryBudget
	Breaker     circuit.Policy
	// SlowStart is the time in which the share of an endpoint that comes back, or is added later, grows to a full one.
	// Zero gives it a full one at once.
	SlowStart time.Duration
	// Starts are those of the client that this one replaces; nil if it replaces none.
	Starts balance.Starts
	// HeadBytes is the size of the largest head of an answer.
	HeadBytes int
	// Budget grants the memory in which streams of HTTP/2 keep what their readers have not taken yet; nil grants all.
	Budget h2conn.Budget
	// RetryAfter, in seconds, is given to clients if the backend cannot be reached or is too slow.
	RetryAfter int
	// Overloaded, if set, is called for each request that found all connections in use, and returns what its client
	// is given instead of RetryAfter.
	Overloaded func(at time.Time) (retryAfter int)
	// OnError, if set, is called for each failed exchange with its cause, which clients do not see. An exchange that
	// a client's own deadline ended is not one.
	OnError func(*Error)
	// OnChange, if set, is called for each change of the endpoints, perhaps by several goroutines at once.
	OnChange func(balance.Change)
}

// Timeouts bound the steps of an exchange.
type Timeouts struct {
	// Connect bounds the making of a connection, TLS included.
	Connect time.Duration
	// Answer bounds the time from the start of a request to the end of the answer's head.
	Answer time.Duration
	// Body bounds each pause within the body of an answer of known length, or one that is read whole.
	Body time.Duration
	// Stream bounds each pause within a body of unknown length. Zero means no bound: a watch may be silent for as long
	// as nothing happens, and TCP keep-alive finds a dead peer.
	Stream time.Duration
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// Ping is after what silence a backend of HTTP/2 to which something was sent is asked for a sign of life, and
	// PingAnswer how long one is waited for.
	Ping, PingAnswer time.Duration
}

// Watches are those of an API server, on which nothing may happen for hours.
type Watches struct {
	// Period is how long the backend is asked at most to keep a watch open on a connection of HTTP/1.1, where nothing
	// but the end of the watch shows that the connection still carries it, and Grace how much longer it may be silent.
	// A zero Period sets no bound.
	Period, Grace time.Duration
}

// Limits bound the connections to a backend, and the requests that wait for one.
type Limits struct {
	// Conns is the largest number of connections, and by HTTP/1.1 so of exchanges at a time; ConnsPerEndpoint the
	// largest number of them to one endpoint, zero for no bound of its own.
	Conns, ConnsPerEndpoint int
	// Pending is how many requests may wait for a connection if all are in use, and Wait for how long.
	Pending int
	Wait    time.Duration
}

// Resolver looks up the addresses of a host; a *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is asked with the network "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// HealthCheck says how endpoints are asked whether they are well: by a GET on a connection of its own.
type HealthCheck struct {
	// Path is the target of the GET, with a query if need be.
	Path string
	// Period is the time from the start of a check to the start of the next. Timeout bounds the time until the head of
	// the answer is there.
	Period, Timeout time.Duration
	balance.Thresholds
	// Status is the status of a success; zero means all from 200 to 399.
	Status int
}

// setDefaults fills in everything that was left zero.
func (c *Config) setDefaults() {
	setDefault(&c.Timeouts.Connect, DefaultConnectTimeout)
	setDefault(&c.Timeouts.Answer, DefaultAnswerTimeout)
	setDefault(&c.Timeouts.Body, DefaultBodyTimeout)
	setDefault(&c.Timeouts.Idle, DefaultIdleTimeout)
	setDefault(&c.Timeouts.Ping, DefaultPing)
	setDefault(&c.Timeouts.PingAnswer, DefaultPingAnswer)
	setDefault(&c.Limits.Wait, DefaultMaxWait)
	setDefault(&c.Limits.Conns, DefaultMaxConns)
	setDefault(&c.Limits.Pending, DefaultMaxPending)
	setDefault(&c.HeadBytes, DefaultHeadBytes)
	setDefault(&c.RetryAfter, DefaultRetryAfter)
	setDefault(&c.Ejection.Base, DefaultEjection)
	setDefault(&c.Ejection.Max, max(DefaultMaxEjection, c.Ejection.Base))
	setDefault(&c.Ejection.Percent, DefaultMaxEjectedPercent)
	setDefault(&c.Breaker.Open, DefaultOpen)
	setDefault(&c.Breaker.MaxOpen, max(DefaultMaxOpen, c.Breaker.Open))
	if h := c.HealthCheck; h != nil {
		own := *h
		c.HealthCheck = &own
		setDefault(&own.Period, DefaultCheckPeriod)
		setDefault(&own.Timeout, DefaultCheckTimeout)
	}
	if c.Retries == nil {
		c.Retries = &balance.RetryBudget{Percent: DefaultRetryPercent, PerSecond: DefaultRetriesPerSecond}
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// policy returns how the endpoints are balanced.
func (c *Config) policy() balance.Policy {
	p := balance.Policy{Ejection: c.Ejection, Retries: *c.Retries, Breaker: c.Breaker, SlowStart: c.SlowStart}
	if c.HealthCheck != nil {
		p.Health = c.HealthCheck.Thresholds
	}
	return p
}
