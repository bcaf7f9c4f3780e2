package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Gateways and backends have addresses of their own on the loopback interface, from which no client connects: a port
// that was free for a moment is not taken by a connection.
const gatewayHost, backendHost = "127.0.0.2", "127.0.0.3"

const rollingConfiguration = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
tls: {certFile: tls.crt, keyFile: tls.key}
upstreams:
- name: orders
  endpoints: ['https://%s', 'https://%s']
  dialect: Plain
  credentials: FrontProxy
  tls: {caFile: ca.crt, certFile: client.crt, keyFile: client.key}
  ejection: {consecutiveFailures: 3, baseSeconds: 1, maxSeconds: 1}
routes: [{pathPrefix: /, upstream: orders}]
identity:
  authenticators:
  - jwt:
      issuer: {url: '%s', certificateAuthority: %q, audiences: [gateway]}
      claimMappings: {username: {expression: claims.sub}}
policies: [policies.yaml]
redis: {addresses: ['%s'], timeoutMilliseconds: 1000, writeLocks: Local}
drainSeconds: 3600
shutdownDeadlineSeconds: 60
`

// rollingPolicies have a limit that falls back to each gateway without Redis, and one that denies.
const rollingPolicies = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: all}
spec: {match: {}, key: User, requests: 1000000, periodSeconds: 1, scope: Shared}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: lists}
spec: {match: {verbs: [list]}, key: User, requests: 1000000, periodSeconds: 1, scope: Shared, whenStoreUnavailable: Deny}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  group: ""
  version: v2
  envelope: Bare
  names: {plural: orders, kind: Order}
  fields: {name: id}
  paths: {collection: /v2/orders, item: '/v2/orders/{name}'}
  backend: {patch: Emulated}
  schema:
    openAPIV3Schema:
      type: object
      properties: {id: {type: string}, count: {type: integer}, tier: {type: string, default: silver}}
`

// What a client that is careful sees of a rolling change: no failed request. Two gateways are restarted in turn, their
// policies, certificates and tokens change, Redis goes and comes, and one of two backends does.
func TestRollingChange(t *testing.T) {
	w := newWorld(t)
	w.start()

	// Each gateway in turn is drained, ended and started again.
	for i := range w.gateways {
		p := w.gateways[i]
		p.signal(t, syscall.SIGTERM)
		testutil.Eventually(t, "draining", func() bool { return p.get("/readyz").code == 503 })
		w.load.served(t, 5) // by it too: it says goodbye in its answers
		w.load.takeOut(p.listen, true)
		w.load.served(t, 2) // so that none of those who know is still on it
		p.signal(t, syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Fatalf("exit: %v, want 0", err)
		}
		w.load.served(t, 3)
		w.gateways[i] = w.startGateway(p.listen)
		w.load.takeOut(p.listen, false)
		w.load.served(t, 5)
	}

	// Other policies come into force, by the file and by SIGHUP; a bad file changes nothing.
	w.write("policies.yaml", strings.Replace(rollingPolicies, "silver", "gold", 1))
	w.eachGateway(func(p *process) { p.signal(t, syscall.SIGHUP) })
	w.eachGateway(func(p *process) {
		testutil.Eventually(t, "other policies", func() bool {
			return strings.Contains(p.get("/metrics").body, "\ngateway_policy_generation 2\n")
		})
	})
	w.load.served(t, 2)
	w.write("policies.yaml", strings.Replace(rollingPolicies, "Shared", "None", 1))
	w.eachGateway(func(p *process) {
		testutil.Eventually(t, "a refused file", func() bool {
			return !strings.Contains(p.get("/metrics").body, "\ngateway_policy_reload_failure_total 0\n")
		})
	})
	w.load.served(t, 5)
	if tier := w.load.create(t, "gold").Tier; tier != "gold" {
		t.Errorf("an order has the tier %q, want the default of the last good policies", tier)
	}

	// Certificates of the gateways, and the ones that they show to backends, are replaced.
	w.next.Server(t, []string{gatewayHost}).Write(t, w.dir, "tls")
	w.next.Client(t, "gateway", nil).Write(t, w.dir, "client")
	w.eachGateway(func(p *process) {
		p.signal(t, syscall.SIGHUP)
		testutil.Eventually(t, "the next certificate", func() bool { return w.signer(p) == "next" })
	})
	w.load.reconnect()
	shown := w.shown.Load()
	testutil.Eventually(t, "the next certificate at the backends", func() bool { return w.shown.Load() > shown })
	w.load.served(t, 5)

	// The issuer of tokens has a new key, and later the former one counts no more.
	w.issuer.Rotate(t, 2)
	fresh := w.token()
	w.eachGateway(func(p *process) {
		testutil.Becomes(t, 404, func() int { return w.load.ask(p, fresh, "/v2/orders/none") })
	})
	w.load.token.Store(&fresh)
	w.load.served(t, 2)
	w.issuer.Rotate(t, 2) // the first key is published no longer
	w.load.served(t, 5)

	// Redis goes and comes back.
	w.redis.Kill()
	w.eachGateway(func(p *process) {
		testutil.Becomes(t, 503, func() int { return w.load.ask(p, fresh, "/v2/orders") })
	})
	w.load.served(t, 5)
	w.redis.Run()
	w.eachGateway(func(p *process) {
		testutil.Becomes(t, 200, func() int { return w.load.ask(p, fresh, "/v2/orders") })
	})
	w.load.served(t, 5)

	// One of two backends dies with requests in it, and comes back.
	w.load.mayBreak.Store(true)
	w.backends[1].kill()
	w.load.served(t, 5)
	w.load.mayBreak.Store(false)
	w.load.served(t, 5)
	w.backends[1] = w.startBackend(w.backends[1].address)
	before := w.backends[1].served.Load()
	testutil.Eventually(t, "served by the backend that came back",
		func() bool { return w.backends[1].served.Load() > before })
	w.load.served(t, 5)

	w.load.stop()
	w.load.mustBeWhole(t)
	for name, count := range w.load.counts {
		got := w.load.read(t, name)
		if got.Count != count {
			t.Errorf("%s has the count %d, want the last that was answered, %d", name, got.Count, count)
		}
	}
	t.Logf("%d requests, sent again: %v", w.load.done.Load(), w.load.retries)
}

// A world is two gateways with all that they depend on, and a load.
type world struct {
	t           *testing.T
	dir, config string
	first, next *credentialstest.Authority // of the gateways' certificates
	issuer      *identitytest.Issuer
	redis       *redistest.Server
	store       *backend.Server
	backends    [2]*replica
	gateways    [2]*process
	shown       atomic.Int64 // requests to backends with a certificate of the next authority
	load        *load
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), first: credentialstest.NewAuthority(t, "first"),
		next:   credentialstest.NewAuthority(t, "next"),
		issuer: identitytest.NewIssuer(t), redis: redistest.Start(t), store: backend.New(backend.Options{}),
	}
	for i := range w.backends {
		w.backends[i] = w.startBackend(backendHost + ":0")
	}
	w.first.Server(t, []string{gatewayHost}).Write(t, w.dir, "tls")
	w.first.Client(t, "gateway", nil).Write(t, w.dir, "client")
	w.write("ca.crt", string(w.first.PEM))
	w.write("policies.yaml", rollingPolicies)
	w.config = w.write("gateway.yaml", fmt.Sprintf(rollingConfiguration,
		w.backends[0].address, w.backends[1].address, w.issuer.URL, w.issuer.CA, w.redis.Address))
	return w
}

func (w *world) start() {
	trusted := w.first.Pool()
	trusted.AddCert(w.next.Cert)
	w.load = &load{failed: make(chan error, 1), trusted: trusted, out: map[string]bool{}, counts: map[string]int64{},
		retries: map[string]int{}}
	token := w.token()
	w.load.token.Store(&token)
	for i := range w.gateways {
		w.gateways[i] = w.startGateway(fmt.Sprint(gatewayHost, ":", testutil.FreePort(w.t)))
		w.load.addresses = append(w.load.addresses, w.gateways[i].listen)
	}
	for i := range 6 {
		w.load.add(i)
	}
	w.t.Cleanup(w.load.stop)
	w.load.served(w.t, 5)
}

func (w *world) token() string { return w.issuer.Token(map[string]any{"sub": "shop"}) }

// write replaces a file at once, so that no reader sees half of it.
func (w *world) write(name, text string) string {
	w.t.Helper()
	file := credentialstest.WriteFile(w.t, w.dir, name+".new", []byte(text))
	to := strings.TrimSuffix(file, ".new")
	if err := os.Rename(file, to); err != nil {
		w.t.Fatal(err)
	}
	return to
}

func (w *world) eachGateway(do func(*process)) {
	for _, p := range w.gateways {
		do(p)
	}
}

// startGateway runs one, and waits until it is ready.
func (w *world) startGateway(listen string) *process {
	w.t.Helper()
	p := startProcess(w.t, listen, fmt.Sprint(gatewayHost, ":", testutil.FreePort(w.t)), "--config", w.config)
	testutil.Eventually(w.t, "ready", func() bool { return p.get("/readyz").code == 200 })
	return p
}

// signer is who signed the certificate that a gateway shows now.
func (w *world) signer(p *process) string {
	c, err := tls.Dial("tcp", p.listen, &tls.Config{RootCAs: w.load.trusted})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Issuer.CommonName
}

// A replica is a backend that shares its objects with others, and asks for a client's certificate.
type replica struct {
	address string
	http    *http.Server
	served  atomic.Int64
	ended   chan struct{}
}

func (w *world) startBackend(address string) *replica {
	w.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	clients := w.first.Pool()
	clients.AddCert(w.next.Cert)
	r := &replica{address: l.Addr().String(), ended: make(chan struct{})}
	config := w.first.Server(w.t, []string{backendHost}).Config(w.t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients
	r.http = &http.Server{ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			r.served.Add(1)
			if in.TLS.PeerCertificates[0].Issuer.CommonName == "next" {
				w.shown.Add(1)
			}
			w.store.ServeHTTP(out, in)
		})}
	go func() {
		defer close(r.ended)
		_ = r.http.Serve(tls.NewListener(l, config)) // ends by kill
	}()
	w.t.Cleanup(r.kill)
	return r
}

// kill cuts all connections, in the midst of requests too.
func (r *replica) kill() {
	_ = r.http.Close()
	<-r.ended
}

// A load is clients that ask one after the other. Half of them know which gateways are taken out,
// as the clients of a load balancer do; the others only notice that connections are refused.
type load struct {
	addresses []string
	trusted   *x509.CertPool
	token     atomic.Pointer[string]
	mayBreak  atomic.Bool // a backend dies: answers may be lost
	done      atomic.Int64
	ending    atomic.Bool
	working   sync.WaitGroup
	clients   []*careful
	failed    chan error // the first failed request

	mu      sync.Mutex
	out     map[string]bool
	counts  map[string]int64 // of orders, as last answered
	retries map[string]int   // by cause
}

// An order is an object of the load.
type order struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
	Tier  string `json:"tier"`
}

func (l *load) add(i int) {
	c := l.client(i%2 == 0)
	l.clients = append(l.clients, c)
	l.working.Go(func() {
		for n := 0; !l.ending.Load(); n++ {
			if err := c.work(fmt.Sprintf("w%d-%d", i, n/8), int64(n%8)); err != nil {
				select {
				case l.failed <- fmt.Errorf("client %d, request %d: %w", i, n, err):
				default:
				}
				return
			}
			c.turns.Add(1)
		}
	})
}

func (l *load) client(knowsOut bool) *careful {
	return &careful{load: l, knowsOut: knowsOut, http: &http.Client{
		Timeout: testutil.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.trusted}},
	}}
}

// served waits until each client has had so many further answers, and ends the test if a request failed.
func (l *load) served(t *testing.T, n int64) {
	t.Helper()
	for _, c := range l.clients {
		until := c.turns.Load() + n
		testutil.Eventually(t, "served", func() bool {
			l.mustBeWhole(t)
			return c.turns.Load() >= until
		})
	}
}

func (l *load) mustBeWhole(t *testing.T) {
	t.Helper()
	select {
	case err := <-l.failed:
		t.Fatalf("a careful client saw a failure: %v", err)
	default:
	}
}

func (l *load) stop() {
	l.ending.Store(true)
	l.working.Wait()
}

func (l *load) takeOut(address string, isOut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[address] = isOut
}

// reconnect makes all clients open new connections.
func (l *load) reconnect() {
	for _, c := range l.clients {
		c.http.CloseIdleConnections()
	}
}

// create makes an order and returns it; read reads one.
func (l *load) create(t *testing.T, name string) (o order) {
	t.Helper()
	return l.do(t, http.MethodPost, "/v2/orders", fmt.Sprintf(`{"id":%q}`, name), 201)
}

func (l *load) read(t *testing.T, name string) (o order) {
	t.Helper()
	return l.do(t, http.MethodGet, "/v2/orders/"+name, "", 200)
}

func (l *load) do(t *testing.T, method, path, body string, want int) (o order) {
	t.Helper()
	a, err := l.client(true).send(method, path, body)
	if err == nil && a.code != want {
		err = fmt.Errorf("%d %s", a.code, a.body)
	}
	if err == nil {
		err = json.Unmarshal(a.body, &o)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return o
}

// ask asks one gateway once, on a connection of its own, and returns the code; 0 without an answer.
func (l *load) ask(p *process, token, path string) int {
	c := l.client(false)
	defer c.http.CloseIdleConnections()
	a, err := c.attempt(p.listen, token, http.MethodGet, path, "")
	if err != nil {
		return 0
	}
	return a.code
}

// A careful client sends a request again only if that does no harm: the connection was refused, the
// answer is 503 with Retry-After, or the request is idempotent and its answer was lost.
type careful struct {
	load     *load
	http     *http.Client
	knowsOut bool // who is taken out
	next     int
	turns    atomic.Int64
}

type lastAnswer struct {
	code  int
	later bool // Retry-After
	body  []byte
}

// work sends the n-th of eight requests about an order: it is created, read, replaced and patched.
func (c *careful) work(name string, n int64) error {
	path := "/v2/orders/" + name
	var a lastAnswer
	var err error
	want := order{ID: name, Count: n}
	switch {
	case n == 0 && !c.knowsOut: // who does not know whom to ask has idempotent requests alone
		a, err = c.send(http.MethodPut, path, fmt.Sprintf(`{"id":%q,"count":0}`, name))
	case n == 0:
		a, err = c.send(http.MethodPost, "/v2/orders", fmt.Sprintf(`{"id":%q,"count":0}`, name))
	case n%2 == 1:
		want.Count--
		a, err = c.send(http.MethodGet, path, "")
	case n%4 == 2 && c.knowsOut:
		a, err = c.send(http.MethodPatch, path, fmt.Sprintf(`{"count":%d}`, n))
	default:
		a, err = c.send(http.MethodPut, path, fmt.Sprintf(`{"id":%q,"count":%d}`, name, n))
	}
	var got order
	if err == nil && a.code != 200 && a.code != 201 {
		err = fmt.Errorf("%d %s", a.code, a.body)
	}
	if err == nil {
		err = json.Unmarshal(a.body, &got)
	}
	if err == nil && (got.ID != want.ID || got.Count != want.Count || got.Tier != "silver" && got.Tier != "gold") {
		err = fmt.Errorf("answered %s, want %+v with its default", a.body, want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	c.load.counts[name] = want.Count
	return nil
}

// send asks the gateways in turn until one answers.
func (c *careful) send(method, path, body string) (lastAnswer, error) {
	var a lastAnswer
	var err error
	isLost := false // the answer to a former attempt
	for range 1000 {
		a, err = c.attempt(c.choose(), *c.load.token.Load(), method, path, body)
		why := ""
		switch {
		case err != nil && errors.Is(err, syscall.ECONNREFUSED):
			why = "refused"
		case err == nil && a.code == http.StatusServiceUnavailable && a.later:
			why = "later"
		case err != nil && c.knowsOut && !c.load.mayBreak.Load():
			return a, err // a client of a serving gateway loses no connection
		case err != nil || c.load.mayBreak.Load() &&
			(a.code == http.StatusBadGateway || a.code == http.StatusGatewayTimeout):
			why, isLost = "lost", true
		}
		if why == "" {
			break
		}
		c.load.mu.Lock()
		c.load.retries[why]++
		c.load.mu.Unlock()
		if isLost && method == http.MethodPost {
			// A create whose answer is lost is looked up before it is sent again.
			if found, err := c.send(http.MethodGet, path+"/"+idOf(body), ""); err == nil &&
				found.code == http.StatusOK {
				return found, nil
			}
		}
	}
	c.load.done.Add(1)
	return a, err
}

func idOf(body string) string {
	var o order
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		panic(err)
	}
	return o.ID
}

// choose returns the address of the next gateway that is not known to be taken out.
func (c *careful) choose() string {
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	for {
		address := c.load.addresses[c.next%len(c.load.addresses)]
		if c.next++; !c.knowsOut || !c.load.out[address] {
			return address
		}
	}
}

func (c *careful) attempt(address, token, method, path, body string) (lastAnswer, error) {
	r, err := http.NewRequest(method, "https://"+address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return lastAnswer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	switch method {
	case http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case http.MethodPost, http.MethodPut:
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return lastAnswer{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	return lastAnswer{answer.StatusCode, answer.Header.Get("Retry-After") != "", b}, err
}
