package proxy

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/proxy/events"
)

// common is what the Gateways of one configuration after the other have in common: the connections of clients, and what
// is known of requests that came before.
type common struct {
	server  *server.Server
	limiter *ratelimit.Limiter
	states  *state.Manager
	metrics *telemetry.Telemetry
	tracer  *tracing.Tracer
	log     *slog.Logger
	memory  *requestMemory
	locks   *storage.Locks
	often   samplers
	calls   calls
	copies  copies
	files   *credentials.Watcher
	pod     corev1.ObjectReference
	// liveChanged is called when Live may return something else than before.
	liveChanged func()
	own         atomic.Pointer[events.Own] // nil if nothing is recorded of the gateway itself
	serving     atomic.Pointer[Gateway]    // whom requests that come now are handed to
}

func newCommon(o Options) *common {
	s := &common{
		limiter: o.Limiter, states: o.States, metrics: o.Metrics, tracer: o.Tracer, log: o.Log,
		memory: newRequestMemory(o.Memory, &o.Config.Limits), locks: storage.NewLocks(), files: o.Credentials,
		pod: o.Pod,
	}
	if s.liveChanged = o.LiveChanged; s.liveChanged == nil {
		s.liveChanged = func() {}
	}
	s.locks.Share(o.Locker)
	if s.files == nil {
		s.files = credentials.NewWatcher(credentials.Options{Log: o.Log})
	}
	return s
}

// Next returns a Gateway by other options that can take the place of this one. The two share connections, counts, locks
// and memory, and the backends and authenticators that have the same settings in both. Of the options, those that are
// not about the configuration have to be the same.
func (g *Gateway) Next(o Options) (*Gateway, error) { return assemble(o, g.common, g) }

// Replace has requests from now on served by this Gateway in place of the one before. Requests in progress are answered
// by the one before, which then lets go of its backends. What policies refer to is read from the backends of this
// Gateway when begin is called, and requests come afterwards.
func (g *Gateway) Replace(before *Gateway, begin func()) {
	g.states.Start(g)
	begin()
	g.server.Configure(g.served)
	g.serving.Store(g)
	g.recordOwn()
	before.retire()
}

// RoutesBy reports whether the Gateway has the listeners and routes of a table, which may be nil, beside those of its
// configuration.
func (g *Gateway) RoutesBy(table *routing.Table) bool { return routing.Equal(g.routing, table) }

// Discard lets go of a Gateway that has never served.
func (g *Gateway) Discard() { g.retire() }

// retire lets go of what the Gateway has as soon as it serves no request.
func (g *Gateway) retire() {
	g.uses.retired.Store(true)
	if g.uses.requests.Load() == 0 {
		g.letGo()
	}
}

// letGo gives up backends, authenticators and the certificates of listeners.
func (g *Gateway) letGo() {
	g.uses.letGo.Do(func() {
		g.identity.release()
		g.routes.close()
		g.listening.close()
	})
}

// A lease counts the Gateways that have something in common.
type lease struct{ holders atomic.Int32 }

func (l *lease) hold() { l.holders.Add(1) }

// release reports whether the last holder gave it up.
func (l *lease) release() bool { return l.holders.Add(-1) == 0 }

// authenticators know clients by their credentials.
type authenticators struct {
	*identity.Authenticators
	lease      lease
	configured *config.Identity
	asked      []*backend // about tokens
	files      *credentials.Watcher
}

// isFor reports whether the authenticators are those of a configuration and its backends.
func (a *authenticators) isFor(c *config.Identity, asked []*backend) bool {
	return a != nil && reflect.DeepEqual(a.configured, c) && slices.Equal(a.asked, asked)
}

func (a *authenticators) release() {
	if a != nil && a.lease.release() {
		a.Close()
		a.files.Close()
	}
}

// Keeps reports whether this Gateway has taken over the upstream of the name from the one before.
func (g *Gateway) Keeps(name string, before *Gateway) bool {
	return g.Backend(name, "") == before.Backend(name, "")
}

// upstream returns the backend of an upstream; nil if a Gateway before has none, or there is none.
func (g *Gateway) upstream(name string) *backend {
	if g == nil {
		return nil
	}
	return g.routes.upstreams[name]
}

// keeps returns the backend that a Gateway before has for the same settings; nil if it has none.
func (g *Gateway) keeps(u *config.UpstreamSpec) *backend {
	if b := g.upstream(u.Name); b != nil && reflect.DeepEqual(b.settings, u) {
		return b
	}
	return nil
}

// startDiscovery asks the API servers at which the gateway has an account, and that it has not asked before, and keeps
// what they say up to date. It waits a short while for their first answers.
func (g *Gateway) startDiscovery() {
	var first sync.WaitGroup
	for _, b := range g.routes.backends {
		if b.isDiscovered() && b.stop == nil {
			var ctx context.Context
			ctx, b.stop = context.WithCancel(context.Background())
			first.Add(1)
			go b.served.Run(ctx, sync.OnceFunc(first.Done))
		}
	}
	awaitFirst(&first)
}
