package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/protobuf"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/wire"
	"github.com/admission-gateway/gateway/policies"
)

// Options are what a Gateway is made of.
type Options struct {
	Config *config.Configuration
	// Policies returns the set in force; each request asks once.
	Policies func() *policies.Set
	// Limiter holds the buckets of rate limits, which outlive policy sets.
	Limiter *ratelimit.Limiter
	// States holds what policies read of backends, which outlives policy sets. The gateway starts it.
	States *state.Manager
	// Credentials keeps certificates, keys and tokens up to date with their files; nil reads them once.
	Credentials *credentials.Watcher
	Metrics     *telemetry.Telemetry
	Log         *slog.Logger
}

// Gateway serves clients on behalf of backends. It is safe for concurrent use.
type Gateway struct {
	server   *server
	routes   *routes
	policies func() *policies.Set
	limiter  *ratelimit.Limiter
	states   *state.Manager
	metrics  *telemetry.Telemetry
	log      *slog.Logger

	documentLimits document.Limits // of what clients send
	storedLimits   document.Limits // of what backends give: what was sent, and what was added to it
	bodyLimit      int64
	budget         *bodyBudget
	protobuf       protobuf.Reader
	admitOnResult  bool // validating policies judge what Kubernetes backends would store
	stripes        *stripes
	unregistered   config.UnregisteredResources
	proxies        identity.TrustedProxies
	identity       *identity.Authenticators // nil where nobody's credentials count
	anonymous      identity.User
	refusals       occasions // of credentials that were refused
	ignored        occasions // of policies that failed and may
	failures       occasions // of exchanges with backends
}

// systemNodes is room for the values that the gateway itself adds to an object.
const systemNodes = 64

// New returns a gateway that serves no listener yet. An error names what of the configuration cannot be used.
func New(o Options) (*Gateway, error) {
	c := o.Config
	g := &Gateway{
		policies: o.Policies, limiter: o.Limiter, states: o.States, metrics: o.Metrics, log: o.Log,
		documentLimits: document.Limits{Bytes: int(c.Limits.BodyBytes), Depth: int(c.Limits.JSONDepth), Nodes: int(c.Limits.JSONNodes)},
		storedLimits:   document.Limits{Bytes: int(c.Limits.BodyBytes), Depth: int(c.Limits.JSONDepth), Nodes: int(c.Limits.JSONNodes) + systemNodes},
		bodyLimit:      c.Limits.BodyBytes,
		budget:         newBodyBudget(c.Limits.BodiesInFlightBytes),
		stripes:        newStripes(),
		unregistered:   c.UnregisteredResources,
		admitOnResult:  c.AdmitOn == config.AdmitOnDryRunResult,
		anonymous:      identity.Anonymous(),
	}
	var err error
	files := o.Credentials
	if files == nil {
		files = credentials.NewWatcher(credentials.Options{Log: o.Log})
	}
	if g.routes, err = g.newRoutes(c, files); err != nil {
		return nil, err
	}
	prefixes, names := make([]netip.Prefix, 0, len(c.TrustedProxies)), make([]string, 0, len(c.TrustedProxies))
	for _, p := range c.TrustedProxies {
		prefixes, names = append(prefixes, p.Prefix), append(names, p.String())
	}
	if g.proxies, err = identity.ParseTrustedProxies(names); err != nil {
		return nil, err
	}
	var secure *credentials.Value[*credentials.Server]
	if c.TLS != nil {
		if secure, err = credentials.WatchServer(files, "the public listener", TLSFiles(c.TLS)); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	if g.identity, err = g.newIdentity(c, files); err != nil {
		return nil, err
	}
	g.server = newServer(serverOptions{
		TLS: secure, HandshakeFailed: g.metrics.HandshakeFailed,
		HeadTimeout: c.Timeouts.HeaderDeadlineSeconds.Duration(), BodyTimeout: c.Timeouts.BodyDeadlineSeconds.Duration(),
		IdleTimeout: c.Timeouts.IdleTimeoutSeconds.Duration(), WriteTimeout: c.Timeouts.WriteTimeoutSeconds.Duration(),
		UpgradeIdleTimeout: c.Timeouts.UpgradeIdleTimeoutSeconds.Duration(),
		HeadBytes:          int(c.Limits.HeaderBytes), TargetBytes: int(c.Limits.URIBytes), Headers: int(c.Limits.Headers),
		Underscores: underscores(c.UnderscoreHeaders), TrustedProxies: prefixes, MaxConns: int(c.Limits.Connections), Log: o.Log,
		Panicked: func(ctx *fasthttp.RequestCtx, _ *conn, err *status.Error) { writeStatus(&ctx.Response, err) },
	}, g.handle)
	g.states.Start(g)
	return g, nil
}

func underscores(u config.UnderscoreHeaders) wire.Underscores {
	switch u {
	case config.Drop:
		return wire.DropUnderscores
	case config.Pass:
		return wire.PassUnderscores
	}
	return wire.RefuseUnderscores
}

// Serve serves the connections of ln until Shutdown; it returns nil then.
func (g *Gateway) Serve(ln net.Listener) error { return g.server.Serve(ln) }

// Drain serves on, and asks each client to make its next connection elsewhere.
func (g *Gateway) Drain() { g.server.Drain() }

// Shutdown stops accepting, waits for the requests in progress up to the end of ctx, and closes the backends' connections.
func (g *Gateway) Shutdown(ctx context.Context) error {
	err := g.server.Shutdown(ctx)
	if g.identity != nil {
		g.identity.Close()
	}
	g.routes.close()
	return err
}

// BodyBytesInFlight is how much of the budget for request bodies is taken.
func (g *Gateway) BodyBytesInFlight() int64 { return g.budget.inUse() }

// measure counts a request that was answered.
func (g *Gateway) measure(r telemetry.Request, started time.Time) {
	g.metrics.RequestEnded()
	r.Took = time.Since(started)
	g.metrics.RequestDone(r)
}

// answered is what is counted of the request.
func (x *exchange) answered() telemetry.Request {
	return telemetry.Request{
		Verb: x.info.Verb, Group: x.info.Group, Resource: x.info.Resource, Registered: x.res != nil, Code: x.code(),
	}
}
