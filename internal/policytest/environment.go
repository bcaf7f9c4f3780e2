package policytest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy"
)

// maxReply bounds an answer of the gateway, which comes from memory.
const maxReply = 256 << 20

// environment is a gateway with a policy set, and the backends behind it. One goroutine plays cases in it.
type environment struct {
	set     *policies.Set
	service *Service
	servers []*server
	gateway *proxy.Gateway
	limiter *ratelimit.Limiter
	states  *state.Manager
	client  *http.Client
	address string
	at      atomic.Pointer[time.Time] // when the case's request comes; nil is now
}

// clock is the clock by which rollouts and exceptions are judged.
func (e *environment) clock() time.Time {
	if at := e.at.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// newEnvironment starts a gateway on loopback.
func newEnvironment(set *policies.Set, service *Service, s *setting,
	metrics *telemetry.Telemetry) (_ *environment, err error) {
	dialect := config.Dialect(s.Dialect)
	if dialect == "" {
		dialect = dialectFor(set)
	}
	e, err := newOffline(set, service, dialect, s.State, metrics)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.address = front.Addr().String()
	go func() { _ = e.gateway.Serve(front) }() // ends with close
	e.client = outbound.New(outbound.Options{Timeout: time.Minute, MaxBytes: maxReply, Direct: true})
	return e, e.synced()
}

// newOffline makes a gateway in front of backends in memory. It does not serve yet. The dialect is of the one backend
// that there is without a configuration.
func newOffline(set *policies.Set, service *Service, dialect config.Dialect, lists map[string][]json.RawMessage,
	metrics *telemetry.Telemetry) (_ *environment, err error) {
	e := &environment{set: set, service: service, limiter: ratelimit.New(0)}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	of := service.Config
	if of == nil {
		if of, err = config.Load("",
			config.Flags{Upstream: "http://127.0.0.1:1", Dialect: string(dialect)}); err != nil {
			return nil, err
		}
		of.Identity = &config.Identity{Anonymous: config.AllowAnonymous,
			Authenticators: []config.Authenticator{config.LoopbackHeaders()}}
	}
	addresses := make([]string, len(of.Upstreams))
	for i := range of.Upstreams {
		u := &of.Upstreams[i]
		s := newServer(u, set)
		for _, source := range set.States() {
			if source.Upstream == "" || source.Upstream == u.Name {
				s.lists[u.BasePath()+source.Path] = lists[source.Name]
			}
		}
		if addresses[i], err = s.start(); err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
	}
	c := of.Offline(addresses)
	c.Telemetry.Explanations = explanations()
	if e.states, err = state.NewManager(state.Options{RetryWait: 10 * time.Millisecond}); err != nil {
		return nil, err
	}
	e.states.Apply(set.States())
	e.gateway, err = proxy.New(proxy.Options{
		Config: c, Policies: func() *policies.Set { return set }, Limiter: e.limiter, States: e.states,
		Metrics: metrics,
		Log:     slog.New(slog.DiscardHandler), Clock: e.clock, RefusesPlainly: !service.shapesRefusals,
		Memory: service.Gateway.Memory, IsUncounted: service.isUncounted,
	})
	if err != nil {
		return nil, err
	}
	for _, s := range e.servers {
		resolvers := e.gateway.Resolvers(s.name)
		s.resolvers.Store(&resolvers)
	}
	return e, nil
}

// An Offline is a gateway in front of backends in memory. It serves no clients, it only judges.
// Collections that policies read are empty, and every namespace exists.
type Offline struct{ environment *environment }

// NewOffline makes a gateway of a policy set.
func NewOffline(set *policies.Set, service Service) (*Offline, error) {
	metrics, err := telemetry.New(telemetry.Options{Version: "offline"})
	if err != nil {
		return nil, err
	}
	e, err := newOffline(set, &service, dialectFor(set), nil, metrics)
	if err != nil {
		return nil, err
	}
	if err := e.synced(); err != nil {
		e.close()
		return nil, err
	}
	return &Offline{e}, nil
}

// Gateway returns the gateway.
func (o *Offline) Gateway() *proxy.Gateway { return o.environment.gateway }

// Close ends the gateway and its backend.
func (o *Offline) Close() { o.environment.close() }

// dialectFor returns the dialect of the backends that the files describe.
func dialectFor(set *policies.Set) config.Dialect {
	for _, r := range set.Registry().Resources() {
		if r.Envelope == resource.Bare || len(r.Paths) > 0 {
			return config.Plain
		}
	}
	return config.Kubernetes
}

// synced waits until the collections that policies read are known.
func (e *environment) synced() (err error) {
	for range 500 {
		if err = e.states.Synced(); err == nil {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("the collections of the policies are not read: %w", err)
}

// close ends the gateway and its backend.
func (e *environment) close() {
	if e.client != nil {
		e.client.CloseIdleConnections()
	}
	if e.gateway != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()                     // no request is in progress
		_ = e.gateway.Shutdown(over) // which is why it has nothing to wait for
	}
	if e.states != nil {
		e.states.Close()
	}
	for _, s := range e.servers {
		s.close()
	}
}

// serverOf returns the backend of a name; nil if there is none.
func (e *environment) serverOf(upstream string) *server {
	at := slices.IndexFunc(e.servers, func(s *server) bool { return s.name == upstream })
	if at < 0 {
		return nil
	}
	return e.servers[at]
}

// prepare lets the backends have nothing but the object that exists; nil: none does.
func (e *environment) prepare(stored location, object json.RawMessage) error {
	for _, s := range e.servers {
		s.reset()
	}
	if object == nil {
		return nil
	}
	s := e.serverOf(stored.upstream)
	if s == nil {
		return fmt.Errorf("no route leads to '%s'", stored.path)
	}
	return s.put(stored.path, object)
}

// reply has the answer that a client sees.
type reply struct {
	code     int
	warnings []string
	body     []byte
	// denials are the messages of the policies, each as often as it was said. An answer says the same once. They are
	// known of cases that count them, and of objects that may be shown.
	denials []string
}

// send sends a request to the gateway.
func (e *environment) send(ctx context.Context, r *request) (*reply, error) {
	e.at.Store(nil)
	if !r.at.IsZero() {
		e.at.Store(&r.at)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+e.address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Host = cmp.Or(r.host, e.address)
	req.URL.Opaque = "//" + req.Host + r.path
	for _, h := range r.headers {
		req.Header.Add(h[0], h[1])
	}
	response, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	return &reply{code: response.StatusCode, warnings: response.Header.Values("Warning"), body: body}, err
}

// explanations lets every user ask in this process, and shows them everything but Secrets.
func explanations() *config.Explanations {
	return &config.Explanations{Groups: []string{identity.AuthenticatedGroup, identity.UnauthenticatedGroup},
		Values: config.ShowValues}
}
