package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/proxy/rewrite"
)

// systemNodes is room for the values that the gateway itself adds to an object.
const systemNodes = 64

// New returns a gateway that serves no listener yet. An error names what of the configuration cannot be used.
func New(o Options) (*Gateway, error) {
	c := o.Config
	g := &Gateway{
		policies: o.Policies, limiter: o.Limiter, states: o.States, metrics: o.Metrics, log: o.Log, clock: o.Clock, refusesPlainly: o.RefusesPlainly,
		requestLimits: limitsOf(&c.Limits, largestBody(c)),
		memory:        newRequestMemory(o.Memory, &c.Limits),
		locks:         storage.NewLocks(),
		unregistered:  c.UnregisteredResources,
		admitOnResult: c.AdmitOn == config.AdmitOnDryRunResult,
		anonymous:     identity.Anonymous(),
	}
	if g.liveChanged = o.LiveChanged; g.liveChanged == nil {
		g.liveChanged = func() {}
	}
	g.locksAlone, _ = c.LocksLocally()
	g.observers = newObservers(o, g.memory.Budget)
	g.locks.Share(o.Locker)
	g.requestLimits.Refused = g.memory.drops.refused
	var err error
	files := o.Credentials
	if files == nil {
		files = credentials.NewWatcher(credentials.Options{Log: o.Log})
	}
	if g.routes, err = g.newRoutes(c, files); err != nil {
		return nil, err
	}
	g.recordOwn(o.Pod)
	for _, b := range g.routes.backends {
		b.comparisons.Asks = o.AsksVersions
	}
	prefixes, names := make([]netip.Prefix, 0, len(c.TrustedProxies)), make([]string, 0, len(c.TrustedProxies))
	for _, p := range c.TrustedProxies {
		prefixes, names = append(prefixes, p.Prefix), append(names, p.String())
	}
	if g.proxies, err = identity.ParseTrustedProxies(names); err != nil {
		return nil, err
	}
	g.readsForwarded = c.ForwardedHeader == config.Forwarded
	var secure *credentials.Value[*credentials.Server]
	if c.TLS != nil {
		if secure, err = credentials.WatchServer(files, "the public listener", TLSFiles(c.TLS)); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	if g.identity, err = g.newIdentity(c, files); err != nil {
		return nil, err
	}
	g.server = server.New(server.Options{
		TLS: secure, HandshakeFailed: g.metrics.HandshakeFailed,
		HeadTimeout: c.Timeouts.HeaderDeadlineSeconds.Duration(), BodyTimeout: c.Timeouts.BodyDeadlineSeconds.Duration(),
		IdleTimeout: c.Timeouts.IdleTimeoutSeconds.Duration(), WriteTimeout: c.Timeouts.WriteTimeoutSeconds.Duration(),
		UpgradeIdleTimeout: c.Timeouts.UpgradeIdleTimeoutSeconds.Duration(),
		HeadBytes:          int(c.Limits.HeaderBytes), TargetBytes: int(c.Limits.URIBytes), Headers: int(c.Limits.Headers),
		Underscores: underscores(c.UnderscoreHeaders), TrustedProxies: prefixes, Forwarded: c.ForwardedHeader == config.Forwarded, MaxConns: int(c.Limits.Connections),
		DrainRate: c.Limits.DrainBytesPerSecond, TooSlow: g.metrics.SlowReaderCut,
		RetryAfter: new(ratelimit.Drops).Add, Memory: g.memory.Memory, Log: o.Log, Panicked: answerPanic,
	}, g.handle)
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.startDiscovery(ctx)
	g.states.OnChange(g.stateChanged)
	g.states.Start(g)
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

// limitsOn returns the limits of requests that come by a route.
func (g *Gateway) limitsOn(c *config.Configuration, r *config.Route) storage.Limits {
	limits := limitsOf(&c.Limits, cmp.Or(r.BodyBytes, c.Limits.BodyBytes))
	limits.Upload, limits.Refused = r.BodyBytes, g.requestLimits.Refused
	limits.Timeouts = upstream.RequestTimeouts{Answer: r.ResponseTimeoutSeconds.Duration(), Body: r.BodyTimeoutSeconds.Duration()}
	return limits
}

// TLSFiles are the files of a listener that speaks TLS.
func TLSFiles(t *config.ListenerTLS) credentials.ServerFiles {
	f := credentials.ServerFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile, MinVersion: tls.VersionTLS12}
	if t.MinVersion == config.VersionTLS13 {
		f.MinVersion = tls.VersionTLS13
	}
	switch t.ClientCertificates {
	case config.RequestCertificates:
		// The gateway verifies the certificates itself: a certificate that no trusted authority
		// signed proves nothing, which an answer can explain better than a failed handshake.
		f.ClientAuth = tls.RequestClientCert
	case config.RequireCertificates:
		f.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return f
}

// newRoutes makes the backends of the configuration and the table that leads to them.
func (g *Gateway) newRoutes(c *config.Configuration, files *credentials.Watcher) (_ *routeTable, err error) {
	r := &routeTable{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	byName, specs := make(map[string]*backend, len(c.Upstreams)), make(map[string]*config.UpstreamSpec, len(c.Upstreams))
	for _, u := range c.Upstreams {
		b := &backend{name: u.Name, host: u.Authority(), base: u.BasePath(), credentials: u.Credentials, upgrades: newUpgrades(u.AllowedUpgrades()), kind: kindOf(u.Dialect), index: len(r.backends)}
		b.comparisons = &plain.Comparisons{Found: g.versionsFound(u.Name)}
		if err := g.connect(b, &u, files); err != nil {
			return nil, fmt.Errorf("upstream '%s': %w", u.Name, err)
		}
		b.storage = storage.Backend{
			Name: u.Name, Client: b.client, URL: u.Servers()[0], Patience: u.ResponseTimeoutSeconds.Duration(),
			Failed: func(err *upstream.Error) { g.upstreamFailed(u.Name, err) },
		}
		if b.storage.Account = b.kind.account(b); b.storage.Account == nil && b.kind.authorizes() {
			g.log.Info("the gateway has no account at the upstream: what policies compare with is read as the client, who has to be allowed to read it", "upstream", u.Name)
		}
		if u.Events == config.RecordEvents {
			g.recordEvents(b)
		}
		if b.kind.discovers() {
			g.discover(b)
		}
		b.proofs = &kubernetes.Proofs{Lacking: func(lack error) { g.upstreamUnproved(u.Name, lack) }}
		b.grants = b.kind.grants()
		if u.Dialect == config.Plain {
			b.authorities = u.Authorities()
		}
		byName[u.Name], specs[u.Name] = b, &u
		r.backends = append(r.backends, b)
	}
	for _, one := range c.Routes {
		b := byName[one.Upstream]
		if b == nil {
			return nil, fmt.Errorf("a route names the upstream '%s', which must be one of `upstreams`", one.Upstream)
		}
		u := specs[one.Upstream]
		from, to := u.Prefixes(&one)
		r.table = append(r.table, route{
			host: one.Host, prefix: from, shows: to, backend: b, rules: rewrite.New(from, to, u.HostOn(&one), u.Authorities()...),
			place:       resource.Place{Host: one.Host, Upstream: one.Upstream, Route: one.Name},
			undescribed: u.UndescribedOn(&one), errorFormat: u.ErrorFormatOn(&one), errorTemplate: u.ErrorTemplateOn(&one), cors: newCORS(one.CORS), limits: g.limitsOn(c, &one),
		})
	}
	r.compile()
	return r, nil
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

// Serve serves the connections of ln until Shutdown; it returns nil then.
func (g *Gateway) Serve(ln net.Listener) error { return g.server.Serve(ln) }

// Drain serves on, and asks each client to make its next connection elsewhere.
func (g *Gateway) Drain() { g.server.Drain() }

// Settle drains, and serves on until what was in progress is done. Requests, other than those that would last, are cut when
// requests is done; upgraded connections and logs that are followed end with lasting. It returns how many of the latter did.
func (g *Gateway) Settle(requests, lasting context.Context) (ended int, err error) {
	return g.server.Settle(requests, lasting)
}

// Shutdown stops accepting, ends what would last, waits for the other requests in progress up to the end of ctx, and closes the backends' connections.
func (g *Gateway) Shutdown(ctx context.Context) error {
	err := g.server.Shutdown(ctx)
	g.stop()
	if g.identity != nil {
		g.identity.Close()
	}
	g.routes.close()
	return err
}

// BodyBytesInFlight returns how much of the memory for all that requests hold is taken.
func (g *Gateway) BodyBytesInFlight() int64 { return g.memory.InUse() }
