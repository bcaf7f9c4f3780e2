package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// clientConfig is what the configuration says of the connections to a backend.
func clientConfig(u *config.Upstream) upstream.Config {
	c := upstream.Config{
		Endpoints:           u.Endpoints,
		ResolvePeriod:       u.ResolvePeriodSeconds.Duration(),
		ConnectTimeout:      u.ConnectTimeoutSeconds.Duration(),
		AnswerTimeout:       u.ResponseTimeoutSeconds.Duration(),
		BodyTimeout:         u.BodyTimeoutSeconds.Duration(),
		StreamTimeout:       u.StreamTimeoutSeconds.Duration(),
		IdleTimeout:         u.IdleTimeoutSeconds.Duration(),
		MaxWait:             u.QueueTimeoutSeconds.Duration(),
		MaxConns:            int(u.MaxConnections),
		MaxConnsPerEndpoint: int(u.MaxConnectionsPerEndpoint),
		MaxPending:          int(u.MaxPendingRequests),
		Ejection: upstream.Ejection{
			Failures: int(u.Ejection.ConsecutiveFailures),
			// An API server that answers 503 may speak of one that is behind it, and which a client chooses by the path.
			Answers: u.Dialect == config.Plain,
			Base:    u.Ejection.BaseSeconds.Duration(), Most: u.Ejection.MaxSeconds.Duration(), Percent: int(u.Ejection.MaxEjectedPercent),
		},
		Retries: &upstream.RetryBudget{Percent: int(u.Retries.BudgetPercent), PerSecond: int(u.Retries.MinPerSecond)},
	}
	if h := u.HealthCheck; h != nil {
		c.HealthCheck = &upstream.HealthCheck{
			Path: h.Path, Period: h.PeriodSeconds.Duration(), Timeout: h.TimeoutSeconds.Duration(),
			Unhealthy: int(h.UnhealthyThreshold), Healthy: int(h.HealthyThreshold), Status: int(h.ExpectedStatus),
		}
	}
	if b := u.CircuitBreaker; b != nil {
		c.Breaker = upstream.Breaker{Failures: int(b.ConsecutiveFailures), Open: b.OpenSeconds.Duration(), Most: b.MaxOpenSeconds.Duration()}
	}
	return c
}

// Upstream is a backend as operators see it.
type Upstream struct {
	Name string
	upstream.State
}

// Upstreams returns what the backends are like now, in the order of the configuration.
func (g *Gateway) Upstreams() []Upstream {
	all := make([]Upstream, len(g.routes.backends))
	for i, b := range g.routes.backends {
		all[i] = Upstream{b.name, b.state()}
	}
	return all
}

// state is what the backend is like. Connections that are the gateway's alone count too.
func (b *backend) state() upstream.State {
	s := b.client.State()
	if b.own == b.client {
		return s
	}
	own := b.own.State()
	s.Open, s.Idle, s.Pending = s.Open+own.Open, s.Idle+own.Idle, s.Pending+own.Pending
	s.Retried, s.Ejections = s.Retried+own.Retried, s.Ejections+own.Ejections
	for i := range s.Endpoints {
		one := &s.Endpoints[i]
		for _, e := range own.Endpoints {
			if e.Address == one.Address && e.Authority == one.Authority {
				one.Connections, one.InFlight = one.Connections+e.Connections, one.InFlight+e.InFlight
			}
		}
	}
	return s
}

// upstreamFailed counts a failed exchange, and logs the first of its kind and how many come after it; clients are not told
// its cause.
func (g *Gateway) upstreamFailed(name string, err *upstream.Error) {
	kind := err.Kind.String()
	g.metrics.UpstreamError(name, kind)
	if times, tell := g.failures.due(name+" "+kind, time.Now()); tell {
		g.log.Warn("the backend failed", "upstream", name, "kind", kind, "cause", fmt.Sprint(err.Cause), "times", times)
	}
}

// upstreamChanged logs what changes about a backend.
func (g *Gateway) upstreamChanged(name string, c upstream.Change) {
	message, level := "", slog.LevelInfo
	switch c.Event {
	case upstream.Ejected:
		message, level = "a server of the backend fails and is passed over", slog.LevelWarn
	case upstream.Readmitted:
		message = "a server of the backend is asked again"
	case upstream.Unhealthy:
		message, level = "a server of the backend fails its health checks and is passed over", slog.LevelWarn
	case upstream.Healthy:
		message = "a server of the backend passes its health checks again"
	case upstream.AddressesChanged:
		message = "the servers of the backend are others"
	case upstream.LookupFailed:
		message, level = "the name of the backend cannot be resolved; its last addresses stay in use", slog.LevelWarn
	case upstream.CircuitOpened:
		message, level = "the backend does not answer and is not asked for a while", slog.LevelWarn
	case upstream.CircuitProbed:
		message = "the backend is asked once, to see whether it answers"
	case upstream.CircuitClosed:
		message = "the backend answers again"
	}
	attributes := []any{"upstream", name}
	if c.Endpoint != "" {
		attributes = append(attributes, "endpoint", c.Endpoint)
	}
	if !c.Until.IsZero() {
		attributes = append(attributes, "until", c.Until)
	}
	if c.Cause != "" {
		attributes = append(attributes, "cause", c.Cause)
	}
	g.log.Log(context.Background(), level, message, attributes...)
}
