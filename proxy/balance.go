package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/proxy/events"
)

// Together they have a watch of a client end within 45 seconds if its connection carries nothing any more.
const (
	watchPeriod = 30 * time.Second
	watchGrace  = 10 * time.Second
)

// clientConfig returns the settings of the connections to a backend.
func clientConfig(u *config.UpstreamSpec) upstream.Config {
	c := upstream.Config{
		Endpoints:     u.Servers(),
		ResolvePeriod: u.ResolvePeriodSeconds.Duration(),
		Protocol: map[config.HTTPProtocol]upstream.Protocol{config.HTTP2Protocol: upstream.HTTP2,
			config.AutoProtocol: upstream.Auto}[u.SpokenProtocol()],
		Timeouts: upstream.Timeouts{
			Connect: u.ConnectTimeoutSeconds.Duration(),
			Answer:  u.ResponseTimeoutSeconds.Duration(),
			Body:    u.BodyTimeoutSeconds.Duration(),
			Stream:  u.StreamTimeoutSeconds.Duration(),
			Idle:    u.IdleTimeoutSeconds.Duration(),
		},
		Limits: upstream.Limits{
			Conns:            int(u.MaxConnections),
			ConnsPerEndpoint: int(u.MaxConnectionsPerEndpoint),
			Pending:          int(u.MaxPendingRequests),
			Wait:             u.QueueTimeoutSeconds.Duration(),
		},
		Ejection: balance.Ejection{
			Failures: int(u.Ejection.ConsecutiveFailures),
			// An API server that answers 503 may speak of one that is behind it, and which a client chooses by the
			// path.
			Answers: u.Dialect == config.Plain,
			Base:    u.Ejection.BaseSeconds.Duration(), Max: u.Ejection.MaxSeconds.Duration(),
			Percent: int(u.Ejection.MaxEjectedPercent),
		},
		SlowStart: u.SlowStartSeconds.Duration(),
		Retries:   &balance.RetryBudget{Percent: int(u.Retries.BudgetPercent), PerSecond: int(u.Retries.MinPerSecond)},
	}
	if u.Dialect == config.Kubernetes {
		c.Watches = &upstream.Watches{}
		if u.StreamTimeoutSeconds == 0 {
			*c.Watches = upstream.Watches{Period: watchPeriod, Grace: watchGrace}
		}
	}
	if h := u.HealthCheck; h != nil {
		c.HealthCheck = &upstream.HealthCheck{
			Path: u.BasePath() + h.Path, Period: h.PeriodSeconds.Duration(), Timeout: h.TimeoutSeconds.Duration(),
			Status:     int(h.ExpectedStatus),
			Thresholds: balance.Thresholds{Unhealthy: int(h.UnhealthyThreshold), Healthy: int(h.HealthyThreshold)},
		}
	}
	if b := u.CircuitBreaker; b != nil {
		c.Breaker = circuit.Policy{Failures: int(b.ConsecutiveFailures), Open: b.OpenSeconds.Duration(),
			MaxOpen: b.MaxOpenSeconds.Duration()}
	}
	return c
}

// Upstream is a backend as operators see it.
type Upstream struct {
	Name string
	upstream.State
	// Versions say what is known of its ETags, by resource.
	Versions []plain.Known
}

// Upstreams returns what the backends are like now, in the order of the configuration.
func (g *Gateway) Upstreams() []Upstream {
	all := make([]Upstream, len(g.routes.backends))
	for i, b := range g.routes.backends {
		all[i] = Upstream{b.name, b.state(), b.comparisons.All()}
	}
	return all
}

// ProofOf returns who compares the preconditions of requests of a method at an upstream now. It is not ok if that does
// not depend on what the upstream was seen to do.
func (g *Gateway) ProofOf(upstream string, r *resource.Resource, method string) (p plain.Proof, ok bool) {
	for _, b := range g.routes.backends {
		if b.name == upstream {
			return g.proofOf(b, r, method)
		}
	}
	return p, false
}

func (g *Gateway) proofOf(b *backend, r *resource.Resource, method string) (p plain.Proof, ok bool) {
	if _, isPlain := b.kind.(plainKind); !isPlain {
		return p, false
	}
	return b.comparisons.Proof(r, method, g.locksAlone)
}

// state returns the state of the backend. Connections that are the gateway's alone count too.
func (b *backend) state() upstream.State {
	s := b.client.State()
	if b.own == b.client {
		return s
	}
	own := b.own.State()
	s.Open, s.Idle, s.Pending = s.Open+own.Open, s.Idle+own.Idle, s.Pending+own.Pending
	s.Unended += own.Unended
	s.Retried, s.Ejections, s.Surplus = s.Retried+own.Retried, s.Ejections+own.Ejections, s.Surplus+own.Surplus
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

// upstreamFailed counts a failed exchange, and logs the first of its kind and how many come after
// it; clients do not see its cause.
func (g *common) upstreamFailed(name string, err *upstream.Error) {
	kind := err.Kind.String()
	g.metrics.UpstreamError(name, kind)
	if times, tell := g.often.failures.Allow(name+" "+kind, time.Now()); tell {
		g.log.Warn("the backend failed", "upstream", name, "kind", kind, "cause", fmt.Sprint(err.Cause), "times", times)
	}
}

// upstreamUnproved warns the operator that a backend is not what the configuration says.
func (g *common) upstreamUnproved(name string, lack error) {
	if times, isDue := g.often.failures.Allow(name+" unproved", time.Now()); isDue {
		g.log.Warn("no dry run is sent to an upstream of the dialect Kubernetes", "upstream", name, "cause", lack,
			"times", times)
	}
}

// accountLacks warns the operator of a right that the gateway's own account would need.
func (g *common) accountLacks(name string, rule *status.AccessRule, reason string) {
	if times, isDue := g.often.failures.Allow(name+" lacks "+rule.Group+"/"+rule.Name()+" "+rule.Verb,
		time.Now()); isDue {
		g.log.Warn("the gateway's own account lacks a right, so that policies cannot judge requests", "upstream", name,
			"rule", rule.String(), "cause", reason, "times", times)
	}
}

// versionsFound returns the function that reports to the operator how a backend treats the versions
// that writes are pinned to.
func (g *common) versionsFound(name string) func(schema.GroupResource, string, plain.Finding) {
	const alone = ": only the gateway's locks keep writers of the resource apart, and several gateways need `redis`"
	return func(r schema.GroupResource, method string, f plain.Finding) {
		log, message := g.log.Warn, ""
		switch f {
		case plain.Compared:
			log, message = g.log.Info, "the backend compares If-Match: no update of the resource is lost"
		case plain.Unclear:
			message = "the backend refuses an ETag that is not its own in a way that does not show whether it compares If-Match, and if it does not" + strings.TrimPrefix(alone, ":")
		case plain.NotCompared:
			message = "the backend gives ETags and does not compare If-Match" + alone
		case plain.Weak:
			message = "the backend gives weak ETags, which If-Match never matches" + alone
		case plain.None:
			message = "the backend gives no ETags" + alone
		case plain.Varying:
			message = "reads of one object differ although nobody writes it, as with a time in the answer, so that the objects of the resource get no ETags: If-Match fails but for '*'"
		}
		attributes := []any{"upstream", name, "resource", r.String()}
		if method != "" {
			attributes = append(attributes, "method", method)
		}
		log(message, attributes...)
	}
}

// mayBeAnother reports whether other servers may answer after a change: ones at other addresses, or
// the same with another program in them.
func mayBeAnother(e balance.Event) bool {
	switch e {
	case balance.AddressesChanged, balance.Readmitted, balance.Healthy, balance.CircuitClosed:
		return true
	}
	return false
}

// upstreamChanged logs and records what changes about a backend.
func (g *common) upstreamChanged(name string, c balance.Change) {
	message, level := "", slog.LevelInfo
	switch c.Event {
	case balance.Ejected:
		message, level = "a server of the backend fails and is passed over", slog.LevelWarn
	case balance.Readmitted:
		message = "a server of the backend is asked again"
	case balance.Unhealthy:
		message, level = "a server of the backend fails its health checks and is passed over", slog.LevelWarn
	case balance.Healthy:
		message = "a server of the backend passes its health checks again"
	case balance.AddressesChanged:
		message = "the servers of the backend are others"
	case balance.LookupFailed:
		message, level = "the name of the backend cannot be resolved; its last addresses stay in use", slog.LevelWarn
	case balance.CircuitOpened:
		message, level = "the backend does not answer and is not asked for a while", slog.LevelWarn
	case balance.CircuitProbed:
		message = "the backend is asked once, to see whether it answers"
	case balance.CircuitClosed:
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
	s := events.Subject{Kind: events.Upstream, Name: name, Part: c.Endpoint}
	switch note := strings.TrimSuffix("upstream "+name+": "+strings.TrimSuffix(message+": "+c.Endpoint, ": ")+": "+
		c.Cause, ": "); c.Event {
	case balance.Ejected, balance.Unhealthy, balance.LookupFailed, balance.CircuitOpened:
		g.Own().Fails(s, note)
	case balance.Readmitted, balance.Healthy, balance.AddressesChanged, balance.CircuitClosed:
		g.Own().Recovers(s, note)
	}
}
