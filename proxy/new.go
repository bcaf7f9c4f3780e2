package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/proxy/rewrite"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// systemNodes is room for the values that the gateway itself adds to an object.
const systemNodes = 64

// New returns a gateway that serves no listener yet. An error names what of the configuration cannot be used.
func New(o Options) (*Gateway, error) {
	s := newCommon(o)
	g, err := assemble(o, s, nil)
	if err != nil {
		return nil, err
	}
	s.server = server.New(g.served, s.handle)
	s.serving.Store(g)
	g.recordOwn()
	g.states.OnChange(s.stateChanged)
	g.states.Start(g)
	return g, nil
}

// assemble makes a Gateway that does not serve yet. It takes over what it can from the one before, which may be nil.
func assemble(o Options, s *common, before *Gateway) (*Gateway, error) {
	c := o.Config
	g := &Gateway{
		common: s, policies: o.Policies, routing: o.Routing,
		configuration: telemetry.ShortHash(c.Hash()),
		callers:       callers{anonymous: identity.Anonymous()},
		writing: writing{
			requestLimits: limitsOf(&c.Limits, largestBody(c)), unregistered: c.UnregisteredResources,
			admitOnResult: c.AdmitOn == config.AdmitOnDryRunResult,
		},
		policyTests: policyTests{o.Clock, o.RefusesPlainly, o.IsUncounted},
		observers:   newObservers(o, s.memory.Budget),
	}
	g.locksAlone, _ = c.LocksLocally()
	g.requestLimits.Refused = s.memory.drops.refused
	var err error
	if g.listening, err = g.newListening(c, o.Routing, before); err != nil {
		return nil, err
	}
	if g.routes, err = g.newRoutes(&o, before); err != nil {
		g.listening.close()
		return nil, err
	}
	prefixes, names := make([]netip.Prefix, 0, len(c.TrustedProxies)), make([]string, 0, len(c.TrustedProxies))
	for _, p := range c.TrustedProxies {
		prefixes, names = append(prefixes, p.Prefix), append(names, p.String())
	}
	if g.proxies, err = identity.ParseTrustedProxies(names); err != nil {
		g.Discard()
		return nil, err
	}
	g.readsForwarded = c.ForwardedHeader == config.Forwarded
	if g.identity, err = g.newIdentity(c, before); err != nil {
		g.Discard()
		return nil, err
	}
	g.served = server.Options{
		Listeners: g.listening.set, HandshakeFailed: s.metrics.HandshakeFailed,
		BadProxyHeader: s.metrics.BadProxyHeader,
		HeadTimeout:    c.Timeouts.HeaderDeadlineSeconds.Duration(),
		BodyTimeout:    c.Timeouts.BodyDeadlineSeconds.Duration(),
		IdleTimeout:    c.Timeouts.IdleTimeoutSeconds.Duration(), WriteTimeout: c.Timeouts.WriteTimeoutSeconds.Duration(),
		UpgradeIdleTimeout: c.Timeouts.UpgradeIdleTimeoutSeconds.Duration(),
		HTTP2: server.HTTP2{IsOff: !c.HTTP2.Enabled,
			MaxConcurrentStreams: int(c.HTTP2.MaxConcurrentStreams), Flooded: s.metrics.Flooded},
		HeadBytes: int(c.Limits.HeaderBytes), TargetBytes: int(c.Limits.URIBytes), Headers: int(c.Limits.Headers),
		Underscores: underscores(c.UnderscoreHeaders), TrustedProxies: prefixes,
		Forwarded: c.ForwardedHeader == config.Forwarded, MaxConns: descriptors.Now().Clients(int(c.Limits.Connections),
			c.BackendConnections()),
		MinReadRate: c.Limits.DrainBytesPerSecond, TooSlow: s.metrics.SlowReaderCut,
		ClientOf: g.clientOf, Overloaded: func(what server.Overload) { s.metrics.Overloaded(string(what)) },
		RetryAfter: new(ratelimit.Drops).Add, Memory: s.memory.Memory, Log: s.log, Panicked: answerPanic,
	}
	g.startDiscovery()
	return g, nil
}

// limitsOf returns the limits of requests with bodies up to so many bytes.
func limitsOf(l *config.Limits, body int64) storage.Limits {
	return storage.Limits{
		Sent:   document.Limits{Bytes: int(body), Depth: int(l.JSONDepth), Nodes: int(l.JSONNodes)},
		Stored: document.Limits{Bytes: int(body), Depth: int(l.JSONDepth), Nodes: int(l.JSONNodes) + systemNodes},
		Body:   body,
	}
}

// largestBody returns the size of the largest body that any route takes.
func largestBody(c *config.Configuration) int64 {
	largest := c.Limits.BodyBytes
	for i := range c.Routes {
		largest = max(largest, c.Routes[i].BodyBytes)
	}
	return largest
}

// limitsOn returns the limits of requests that come by a route to an upstream, which is nil if there is none.
func (g *Gateway) limitsOn(c *config.Configuration, u *config.UpstreamSpec, r *config.Route) storage.Limits {
	limits := limitsOf(&c.Limits, cmp.Or(r.BodyBytes, c.Limits.BodyBytes))
	limits.Upload, limits.Refused = r.BodyBytes, g.requestLimits.Refused
	limits.Timeouts = upstream.RequestTimeouts{Answer: r.ResponseTimeoutSeconds.Duration(),
		Body: r.BodyTimeoutSeconds.Duration()}
	if u != nil {
		limits.ContinuesWrites, limits.LastsCalls = u.ContinuesWrites(r), u.LastsCalls(r)
	}
	return limits
}

// ownRoutes makes the backends of the configuration, or takes them over from a Gateway before, and returns the routes
// that lead to them.
func (g *Gateway) ownRoutes(r *routeTable, o *Options, before *Gateway) (own []*route, err error) {
	c := o.Config
	specs := make(map[string]*config.UpstreamSpec, len(c.Upstreams))
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		b := before.keeps(u)
		if b == nil {
			if b, err = g.newBackend(u, nil, before.upstream(u.Name), o.AsksVersions); err != nil {
				return nil, fmt.Errorf("upstream '%s': %w", u.Name, err)
			}
		}
		b.lease.hold()
		r.upstreams[u.Name], specs[u.Name] = b, u
		r.backends = append(r.backends, b)
	}
	for _, one := range c.Routes {
		b := r.upstreams[one.Upstream]
		if b == nil {
			return nil, fmt.Errorf("a route names the upstream '%s', which must be one of `upstreams`", one.Upstream)
		}
		u := specs[one.Upstream]
		from, to := u.Prefixes(&one)
		own = append(own, &route{
			host: one.Host, spans: []span{{from, to}}, backend: b,
			rules:       rewrite.New(from, to, u.HostOn(&one), u.Authorities()...),
			place:       resource.RouteRef{Host: one.Host, Upstream: one.Upstream, Route: one.Name},
			way:         telemetry.Routing{Route: one.Name, Upstream: one.Upstream},
			undescribed: u.UndescribedOn(&one), errorFormat: u.ErrorFormatOn(&one),
			errorTemplate: u.ErrorTemplateOn(&one), cors: newCORS(one.CORS), limits: g.limitsOn(c, u, &one),
		})
	}
	return own, nil
}

// newBackend makes a backend, in place of one before with other settings if there is one.
func (s *common) newBackend(u *config.UpstreamSpec, peer *credentials.Peer, before *backend,
	asksVersions bool) (*backend, error) {
	b := &backend{name: u.Name, settings: u, files: s.files.Part(), host: u.Authority(), base: u.BasePath(),
		credentials: u.Credentials, upgrades: newUpgrades(u.AllowedUpgrades()), kind: kindOf(u.Dialect)}
	b.comparisons = &plain.Comparisons{Found: s.versionsFound(u.Name), Asks: asksVersions}
	if err := s.connect(b, u, peer, before); err != nil {
		b.files.Close()
		return nil, err
	}
	b.storage = storage.Backend{
		Name: u.Name, Client: b.client, URL: u.Servers()[0], Patience: u.ResponseTimeoutSeconds.Duration(),
		Failed: func(err *upstream.Error) { s.upstreamFailed(u.Name, err) },
	}
	if measured := telemetry.ExchangesWith(s.metrics, u.Name, u.Servers()[0]); measured != nil {
		b.storage.Measured = func(method []byte, code int, err error, took time.Duration) {
			failure := spans.FailureOf(err)
			if failure != "" {
				code = 0
			}
			measured.Add(method, code, failure, took)
		}
	}
	if b.storage.Account = b.kind.account(b); b.storage.Account == nil && b.kind.authorizes() {
		s.log.Info("the gateway has no account at the upstream: what policies compare with is read as the client, who has to be allowed to read it", "upstream", u.Name)
	}
	if u.Events == config.RecordEvents {
		s.recordEvents(b)
	}
	if b.kind.discovers() {
		s.discover(b)
	}
	b.proofs = &kubernetes.Proofs{Lacking: func(lack error) { s.upstreamUnproved(u.Name, lack) }}
	b.grants = b.kind.grants()
	if u.Dialect == config.Plain {
		b.authorities = u.Authorities()
	}
	return b, nil
}

func underscores(u config.UnderscoreHeaders) message.Underscores {
	switch u {
	case config.Drop:
		return message.DropUnderscores
	case config.Pass:
		return message.PassUnderscores
	}
	return message.RefuseUnderscores
}

// Serve serves the connections of ln, which listens on the first of the Addresses, until Shutdown; it returns nil then.
func (g *Gateway) Serve(ln net.Listener) error { return g.server.Serve(ln) }

// Addresses are those on which to listen.
func (g *Gateway) Addresses() []string { return g.listening.set.Addresses() }

// Attach returns what serves the connections of ln, which listens on one of the Addresses, until Leave or Shutdown; it
// returns nil then.
func (g *Gateway) Attach(address string, ln net.Listener) (serve func() error) {
	return g.server.Attach(address, ln)
}

// Leave closes the listener of an address.
func (g *Gateway) Leave(address string) { g.server.Leave(address) }

// BeginDrain makes each answer the last of its connection, so that clients connect to another gateway. Requests are
// still served.
func (g *Gateway) BeginDrain() { g.server.BeginDrain() }

// Drain begins a drain, and serves on until the requests in progress are done. When requests is done, all but those
// that would last are cut; upgraded connections and logs that are followed end with lasting. It returns how many of the
// latter were ended.
func (g *Gateway) Drain(requests, lasting context.Context) (ended int, err error) {
	return g.server.Drain(requests, lasting)
}

// Shutdown stops accepting, ends what would last, waits for the other requests in progress up to the end of ctx, and
// closes the backends' connections.
func (g *Gateway) Shutdown(ctx context.Context) error {
	err := g.server.Shutdown(ctx)
	g.letGo()
	return err
}

// BodyBytesInFlight returns how much of the memory for all that requests hold is taken.
func (g *Gateway) BodyBytesInFlight() int64 { return g.memory.InUse() }
