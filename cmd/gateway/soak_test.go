package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// What a gateway at rest may have more at the end of a soak than it had after the warm-up: so much memory after a
// garbage collection, and so many goroutines more than before its first request.
const (
	soakMiB        = 4
	soakShare      = 0.1 // of the memory after the warm-up
	soakGoroutines = 30
)

const soakConfiguration = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
admin: {profiling: true}
upstreams:
- name: orders
  endpoints: ['http://%s', 'http://%s']
  dialect: Plain
  idleTimeoutSeconds: 1
  ejection: {consecutiveFailures: 3, baseSeconds: 1, maxSeconds: 1}
routes: [{pathPrefix: /, upstream: orders}]
policies: [policies/]
limits: {bodiesInFlightBytes: 268435456}
timeouts: {headerDeadlineSeconds: 1, bodyDeadlineSeconds: 1, idleTimeoutSeconds: 1, writeTimeoutSeconds: 1}
telemetry: {audit: {log: {path: audit.log, maxSizeMegabytes: 10, maxBackups: 1}}}
drainSeconds: 0
`

const soakPolicies = `apiVersion: admission-gateway.io/v1alpha1
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
      properties:
        id: {type: string}
        count: {type: integer, maximum: 1000}
        tier: {type: string, default: silver}
        note: {type: string}
        tags: {type: array, items: {type: string}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: notes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v2], operations: [CREATE, UPDATE], resources: [orders]}]}
  validations: [{expression: "!has(object.note) || !object.note.matches('forbidden|hidden')", message: must not be forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: notes}
spec: {policyName: notes, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: tags}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v2], operations: [CREATE, UPDATE], resources: [orders]}]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: shops}
spec: {match: {matchConditions: [{name: shops, expression: "'x-shop' in request.headers"}]}, key: Header, headerName: X-Shop, requests: 10, periodSeconds: 1, burst: 5}
---
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: RequestResponse}]
`

const soakRego = `package tags

deny contains msg if {
	some tag in input.review.object.tags
	not regex.match("^[a-z]+$", tag)
	msg := sprintf("the tag '%s' must consist of lower-case letters", [tag])
}
`

// The process is as large after many requests of all kinds, with faults, as it was after some: neither memory nor
// goroutines grow. GATEWAY_SOAK=10m is how long; without it a few rounds must do.
func TestSoak(t *testing.T) {
	duration := time.Duration(0)
	if text := os.Getenv("GATEWAY_SOAK"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSoak(t)
	atStart := s.goroutines()
	began := time.Now()
	rounds := func(least int, until time.Duration) {
		for n := 0; n < least || time.Since(began) < until; n++ {
			s.round()
			if duration > 0 && n%20 == 0 {
				t.Logf("after %v and %d requests: %d MiB, %d goroutines", time.Since(began).Round(time.Second),
					s.requests.Load(), s.heap()>>20, s.goroutines())
			}
		}
	}
	rest := func() int {
		s.forget()
		testutil.Eventually(t, "at rest",
			func() bool { return gauge(s.p.get("/metrics").body, "gateway_requests_in_flight") == 0 })
		testutil.Eventually(t, "as few goroutines as at the start", func() bool {
			n := s.goroutines()
			if n > atStart+soakGoroutines {
				s.grown = fmt.Sprintf("%d goroutines, %d at the start:\n%s", n, atStart,
					s.p.get("/debug/pprof/goroutine?debug=1").body)
				return false
			}
			s.grown = ""
			return true
		})
		return s.heap()
	}

	rounds(testutil.Amount(2, 1), duration/5)
	warm := rest()
	rounds(testutil.Amount(3, 1), duration)
	rest()
	allowed := warm + int(soakShare*float64(warm)) + soakMiB<<20
	testutil.Eventually(t, "as little memory as after the warm-up", func() bool {
		n := s.heap()
		if n > allowed {
			s.grown = fmt.Sprintf("%d bytes of memory, %d after the warm-up", n, warm)
			return false
		}
		s.grown = ""
		return true
	})
	if log := s.p.log.String(); strings.Contains(log, "panic") {
		t.Error("the log tells of a panic")
	}
	counts := map[string]int64{}
	for name, n := range s.codes.Range {
		counts[name.(string)] = n.(*atomic.Int64).Load()
	}
	t.Logf("%d requests in %v: %v; memory %d KiB after the warm-up, %d KiB at the end; goroutines %d at the start, %d at the end",
		s.requests.Load(), time.Since(began).Round(time.Second), counts, warm>>10, s.heap()>>10, atStart,
		s.goroutines())
	for _, code := range []string{"200", "201", "404", "405", "413", "422", "429", "502"} {
		if counts[code] == 0 {
			t.Errorf("no request was answered %s", code)
		}
	}
	s.p.signal(t, syscall.SIGTERM)
	if err := s.p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// soak is a gateway before two backends, and what is done to them.
type soak struct {
	t        *testing.T
	p        *process
	dir      string
	store    *backend.Server
	backends [2]*replica
	requests atomic.Int64
	codes    sync.Map // of answers: to counters
	clients  []*http.Client
	grown    string // what is too large at rest
	policies int    // versions of the policies
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, dir: t.TempDir(), store: backend.New(backend.Options{})}
	for i := range s.backends {
		s.backends[i] = startPlainReplica(t, s.store, backendHost+":0")
	}
	s.store.SetFault(func(r *backend.Request) backend.Fault {
		switch {
		case strings.HasPrefix(r.Target, "/faults/raw-"):
			return backend.Fault{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef")}
		case strings.HasPrefix(r.Target, "/faults/drop-"):
			return backend.Fault{DropBefore: true}
		case strings.HasPrefix(r.Target, "/faults/break-"):
			return backend.Fault{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabcdef")}
		}
		return backend.Fault{}
	})
	for i := range 30 {
		if _, err := s.store.Put(fmt.Sprintf("/large/%d", i),
			[]byte(`{"a":"`+strings.Repeat("x", 100<<10)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.activate()
	testutil.WriteFile(t, filepath.Join(s.dir, "policies", "tags.rego"), soakRego)
	config := credentialstest.WriteFile(t, s.dir, "gateway.yaml",
		fmt.Appendf(nil, soakConfiguration, s.backends[0].address, s.backends[1].address))
	s.p = startProcess(t, testutil.FreeAddress(t), testutil.FreeAddress(t), "--config", config)
	testutil.Eventually(t, "ready", func() bool { return s.p.get("/readyz").code == 200 })
	t.Cleanup(func() {
		if s.grown != "" {
			t.Log(s.grown)
		}
	})
	return s
}

// startPlainReplica serves the store without TLS.
func startPlainReplica(t *testing.T, store *backend.Server, address string) *replica {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{address: l.Addr().String(), ended: make(chan struct{}), http: &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), Handler: store, ReadHeaderTimeout: testutil.Patience,
	}}
	go func() {
		defer close(r.ended)
		_ = r.http.Serve(l) // ends by kill
	}()
	t.Cleanup(r.kill)
	return r
}

// activate writes other policies: the default of tier changes.
func (s *soak) activate() {
	s.policies++
	text := strings.Replace(soakPolicies, "silver", fmt.Sprintf("tier%d", s.policies%2), 1)
	file := credentialstest.WriteFile(s.t, s.dir, "policies.yaml.new", []byte(text))
	if err := os.Rename(file, filepath.Join(s.dir, "policies", "policies.yaml")); err != nil {
		s.t.Fatal(err)
	}
}

// heap returns the bytes of memory in use after garbage collections.
func (s *soak) heap() int {
	page := ""
	for range 3 { // pools are empty after the second
		page = s.p.get("/debug/pprof/heap?gc=1&debug=1").body
	}
	return s.number(page, `(?m)^# HeapAlloc = (\d+)$`)
}

func (s *soak) goroutines() int {
	return s.number(s.p.get("/debug/pprof/goroutine?debug=1").body, `^goroutine profile: total (\d+)`)
}

func (s *soak) number(page, pattern string) int {
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		s.t.Fatalf("the profile has no %s: %.300s", pattern, page)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// round has each kind of client do its work, while backends and policies change.
func (s *soak) round() {
	var all sync.WaitGroup
	for i, work := range []func(c *http.Client, n int){
		s.orders, s.orders, s.sameOrder, s.sameOrder, s.denied, s.limited, s.watches, s.uploads, s.aborted, s.slow,
		s.faults,
	} {
		if len(s.clients) <= i {
			s.clients = append(s.clients, &http.Client{Timeout: testutil.Patience, Transport: &http.Transport{}})
		}
		client := s.clients[i]
		all.Go(func() { work(client, int(s.requests.Load())) })
	}
	which, begun := s.policies%2, s.requests.Load()
	testutil.Eventually(s.t, "at work", func() bool { return s.requests.Load() > begun+200 })
	s.backends[which].kill()
	s.activate()
	s.p.signal(s.t, syscall.SIGHUP)
	s.backends[which] = startPlainReplica(s.t, s.store, s.backends[which].address)
	all.Wait()
}

// forget closes the connections of all clients.
func (s *soak) forget() {
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
}

// send counts the answer to a request, and returns its code; 0 without one.
func (s *soak) send(c *http.Client, method, path, contentType string, body io.Reader, header ...string) int {
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.p.listen+path, body)
	if err != nil {
		panic(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := c.Do(r)
	code := 0
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // a backend may die in the midst of it
		_ = answer.Body.Close()
		code = answer.StatusCode
	}
	s.count(code)
	return code
}

func (s *soak) count(code int) {
	if code == http.StatusInternalServerError {
		s.t.Error("a request was answered 500")
	}
	s.requests.Add(1)
	n, _ := s.codes.LoadOrStore(strconv.Itoa(code), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

const jsonType, mergePatchType = "application/json", "application/merge-patch+json"

// orders have names that were not used before, and are gone in the end.
func (s *soak) orders(c *http.Client, n int) {
	for i := range 40 {
		name := fmt.Sprintf("o%d-%d-%p", n, i, c)
		s.send(c, http.MethodPost, "/v2/orders", jsonType,
			strings.NewReader(fmt.Sprintf(`{"id":%q,"count":%d,"tags":["new","paid"]}`, name, i)))
		s.send(c, http.MethodGet, "/v2/orders/"+name, "", nil)
		s.send(c, http.MethodPatch, "/v2/orders/"+name, mergePatchType, strings.NewReader(`{"note":"sent"}`))
		s.send(c, http.MethodPut, "/v2/orders/"+name, jsonType,
			strings.NewReader(fmt.Sprintf(`{"id":%q,"count":%d}`, name, i)))
		for range 10 { // a backend may be dying
			if code := s.send(c, http.MethodDelete, "/v2/orders/"+name, "", nil); code == 200 || code == 404 {
				break
			}
		}
	}
}

// sameOrder is patched by several clients, which wait for each other.
func (s *soak) sameOrder(c *http.Client, _ int) {
	for i := range 40 {
		s.send(c, http.MethodPut, "/v2/orders/same", jsonType,
			strings.NewReader(`{"id":"same","count":1,"tags":["new"]}`))
		s.send(c, http.MethodPatch, "/v2/orders/same", mergePatchType,
			strings.NewReader(fmt.Sprintf(`{"count":%d}`, i)))
		s.send(c, http.MethodPatch, "/v2/orders/same", "application/json-patch+json",
			strings.NewReader(`[{"op":"add","path":"/tags/-","value":"paid"}]`))
		if i%20 == 0 {
			s.send(c, http.MethodGet, "/v2/orders", "", nil)
		}
	}
}

// denied requests are refused by the schema, by CEL and by Rego, and because they cannot be read.
func (s *soak) denied(c *http.Client, n int) {
	for i := range 40 {
		for _, body := range []string{`{"id":"x","count":1001}`, `{"id":"x","note":"forbidden"}`,
			`{"id":"x","tags":["UPPER"]}`, `{"id":"x","id":"y"}`, `{"id":`} {
			s.send(c, http.MethodPost, "/v2/orders", jsonType, strings.NewReader(body))
		}
		s.send(c, http.MethodGet, fmt.Sprintf("/v2/orders/none-%d-%d", n, i), "", nil)
		s.send(c, http.MethodPost, fmt.Sprintf("/unknown/%d/%d", n, i), "text/plain", strings.NewReader("text"))
		s.send(c, "INVENTED", "/v2/orders", "", nil)
	}
}

// limited clients have new keys, and one that all have.
func (s *soak) limited(c *http.Client, n int) {
	for i := range 200 {
		s.send(c, http.MethodGet, "/v2/orders/same", "", nil, "X-Shop", fmt.Sprintf("shop-%d-%d", n, i))
		s.send(c, http.MethodGet, "/v2/orders/same", "", nil, "X-Shop", "one")
	}
}

// watches have an event or none, and end because the client leaves or the backend dies.
func (s *soak) watches(c *http.Client, n int) {
	for i := range 20 {
		ctx, leave := context.WithCancel(s.t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.p.listen+"/v2/orders?watch=true", nil)
		if err != nil {
			panic(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			leave()
			s.count(0)
			continue
		}
		s.count(answer.StatusCode)
		if i%4 != 0 {
			if _, err := s.store.Put("/v2/orders/watched",
				fmt.Appendf(nil, `{"id":"watched","count":%d}`, n%1000)); err != nil {
				panic(err)
			}
			_, _ = bufio.NewReader(answer.Body).ReadString('\n') // the backend may die before
		}
		leave()
		_ = answer.Body.Close()
	}
}

// uploads are large, of a known length or in chunks, and too large.
func (s *soak) uploads(c *http.Client, _ int) {
	text := []byte(`{"id":"large","note":"` + strings.Repeat("n", 2<<20) + `"}`)
	for range 3 {
		s.send(c, http.MethodPut, "/v2/orders/large", jsonType, bytes.NewReader(text))
		s.send(c, http.MethodPut, "/files/one", "application/octet-stream", bytes.NewReader(text))
		s.send(c, http.MethodPut, "/files/two", jsonType, io.MultiReader(bytes.NewReader(text))) // in chunks
		s.send(c, http.MethodPut, "/v2/orders/large", jsonType, bytes.NewReader(slices.Concat(text, text)))
		s.send(c, http.MethodGet, "/large", "", nil)
	}
}

// aborted connections end before a request, within one, or before its answer.
func (s *soak) aborted(_ *http.Client, _ int) {
	whole := "POST /v2/orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"id\":\"ab\"}\n"
	for i := range 60 {
		for _, text := range []string{"", whole[:20], whole[:len(whole)-5], whole,
			"GET /large HTTP/1.1\r\nHost: shop\r\n\r\n", "GET /v2/orders?watch=true HTTP/1.1\r\nHost: shop\r\n\r\n"} {
			conn, err := net.Dial("tcp", s.p.listen)
			if err != nil {
				s.t.Error(err)
				return
			}
			if tcp, ok := conn.(*net.TCPConn); ok && i%2 == 0 {
				_ = tcp.SetLinger(0) // a reset
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
			s.requests.Add(1)
		}
	}
}

// slow clients do not send what they began, or do not read what they asked for.
func (s *soak) slow(_ *http.Client, _ int) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			conn, err := net.Dial("tcp", s.p.listen)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			switch i % 3 {
			case 0:
				_, _ = io.WriteString(conn, "POST /v2/orders HTTP/1.1\r\nHost: sh")
			case 1:
				_, _ = io.WriteString(conn, "POST /v2/orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
			default:
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.SetReadBuffer(4 << 10)
				}
				_, _ = io.WriteString(conn, "GET /large HTTP/1.1\r\nHost: shop\r\n\r\n")
				time.Sleep(1500 * time.Millisecond) // longer than writeTimeoutSeconds; no check depends on it
				s.requests.Add(1)
				return
			}
			_ = conn.SetDeadline(time.Now().Add(testutil.Patience))
			_, _ = io.Copy(io.Discard, conn) // until the gateway ends it
			s.requests.Add(1)
		})
	}
	all.Wait()
}

// faults asks for answers that the backend breaks.
func (s *soak) faults(c *http.Client, _ int) {
	for i := range 40 {
		s.send(c, http.MethodGet, fmt.Sprintf("/faults/raw-%d", i), "", nil)
		s.send(c, http.MethodPut, fmt.Sprintf("/faults/drop-%d", i), jsonType, strings.NewReader(`{}`))
		s.send(c, http.MethodGet, fmt.Sprintf("/faults/break-%d", i), "", nil)
	}
}
