package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// leavingFiles describe notes, whose backend compares versions, memos, whose backend has none, so that a write holds
// the lock of its memo, and an audit log.
const leavingFiles = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  fields: {name: id}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: memos.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: memos, kind: Memo}
  paths: {collection: /v1/memos, item: '/v1/memos/{name}'}
  fields: {name: id}
  backend: {patch: Emulated}
---
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: Metadata, omitStages: [RequestReceived]}
`

// A heldBackend holds each request until it is released, but for those to /free and reads of memos, and notes what it
// gets.
type heldBackend struct {
	url          string
	began, ended chan string // "METHOD path" of each request that is held; ended if it is cancelled
	release      chan struct{}
	releaseAll   func()
	served       atomic.Int32 // in progress
	mu           sync.Mutex
	got          []string
}

func newHeldBackend(t *testing.T, protocol config.HTTPProtocol) *heldBackend {
	t.Helper()
	b := &heldBackend{began: make(chan string, 10_000), ended: make(chan string, 10_000), release: make(chan struct{})}
	s := httptest.NewUnstartedServer(b)
	if protocol == config.HTTP2Protocol {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
	}
	s.Start()
	b.url = s.URL
	b.releaseAll = sync.OnceFunc(func() { close(b.release) })
	t.Cleanup(s.Close)
	t.Cleanup(b.releaseAll)
	return b
}

func (b *heldBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.served.Add(1)
	defer b.served.Add(-1)
	_, _ = io.ReadAll(r.Body)
	what := r.Method + " " + r.URL.Path
	b.mu.Lock()
	b.got = append(b.got, what)
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/free" || r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/memos/") {
		_, _ = w.Write([]byte(`{"id":"m1","a":1}`))
		return
	}
	b.began <- what
	select {
	case <-b.release:
		_, _ = w.Write([]byte(`{"id":"m1","a":2}`))
	case <-r.Context().Done():
		b.ended <- what
	}
}

// requests returns what the backend got, in its order.
func (b *heldBackend) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// A leaver is a client that can leave.
type leaver struct {
	send  func(method, path, body string)
	leave func()
}

// leavers are the ways in which clients leave.
var leavers = map[string]func(t *testing.T, address string) leaver{
	"HTTP/1.1 FIN": func(t *testing.T, address string) leaver {
		return leaverByHTTP1(t, address, func(nc net.Conn) { _ = nc.(*net.TCPConn).CloseWrite() })
	},
	"HTTP/1.1 close": func(t *testing.T, address string) leaver {
		return leaverByHTTP1(t, address, func(nc net.Conn) { _ = nc.Close() })
	},
	"HTTP/1.1 RST": func(t *testing.T, address string) leaver {
		return leaverByHTTP1(t, address, func(nc net.Conn) {
			_ = nc.(*net.TCPConn).SetLinger(0)
			_ = nc.Close()
		})
	},
	"HTTP/1.1 TLS": func(t *testing.T, address string) leaver {
		return leaverByHTTP1(t, h1test.SecureScheme+address, func(nc net.Conn) { _ = nc.(*tls.Conn).CloseWrite() })
	},
	"HTTP/2 RST_STREAM": func(t *testing.T, address string) leaver {
		return leaverByHTTP2(t, address, func(c *h2test.Client) { _ = c.WriteRSTStream(1, http2.ErrCodeCancel) })
	},
	"HTTP/2 close": func(t *testing.T, address string) leaver {
		return leaverByHTTP2(t, address, func(c *h2test.Client) { _ = c.Conn.Close() })
	},
}

func leaverByHTTP1(t *testing.T, address string, leave func(net.Conn)) leaver {
	nc, _ := h1test.Dial(t, address)
	return leaver{
		send: func(method, path, body string) {
			h1test.Send(t, nc, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body))
		},
		leave: func() { leave(nc) },
	}
}

func leaverByHTTP2(t *testing.T, address string, leave func(*h2test.Client)) leaver {
	c := h2test.Dial(t, address)
	return leaver{
		send: func(method, path, body string) {
			c.Head(t, 1, body == "",
				append([]string{":method: " + method},
					append(h2test.Get(path)[1:], "content-type: application/json")...)...)
			if body != "" {
				h2test.Must(t, c.WriteData(1, true, []byte(body)))
			}
		},
		leave: func() { leave(c) },
	}
}

// A leavingGateway is a gateway whose clients leave, with its audit log.
type leavingGateway struct {
	*Gateway
	address string
	events  *keptEvents
}

func newLeavingGateway(t *testing.T, b *heldBackend, change func(*config.Configuration)) *leavingGateway {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: b.url, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	set := policiestest.LoadFiles(t, policiestest.Write(t, leavingFiles))
	g := &leavingGateway{Gateway: newTestGateway(t, c, func() *policies.Set { return set }), events: &keptEvents{}}
	log := audit.New(audit.Options{Mode: audit.Batch, QueueBytes: 1 << 20, Backoff: time.Second,
		MaxBackoff: time.Second}, audit.Waiting{Sink: g.events})
	g.observers.audit = &audit.Auditor{Log: log, MaxEvent: 100 << 10}
	g.address = serveGateway(t, g.Gateway, nil)
	return g
}

// abandoned waits until so many requests were counted as 499.
func (g *leavingGateway) abandoned(t *testing.T, want int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprint(want, " requests with the code 499"), func() bool {
		w := httptest.NewRecorder()
		g.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		n := 0
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "gateway_requests_total{") && strings.Contains(line, `code="499"`) {
				count := 0
				_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &count)
				n += count
			}
		}
		return n == want
	})
}

// audited returns the audit log of all requests.
func (g *leavingGateway) audited(t *testing.T) string {
	t.Helper()
	if err := g.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.observers.audit.Log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g.events.String()
}

// TestClientsThatLeave: what a client has sent ends at the backend when the client leaves, in each way in which it can,
// by HTTP/1.1 and HTTP/2 to the backend, described or not, read or write. It is counted and recorded as 499, and the
// record of a write says that its outcome is not known. A write that holds the lock of its object goes on to its end.
func TestClientsThatLeave(t *testing.T) {
	secure := h1test.NewTLS(t, credentials.ServerFiles{})
	for _, protocol := range []config.HTTPProtocol{config.HTTP1Protocol, config.HTTP2Protocol} {
		for how, dial := range leavers {
			for _, c := range []struct {
				what, method, path, body string
				runsOn, isUnknown        bool
			}{
				{what: "undescribed read", method: "GET", path: "/other"},
				{what: "undescribed write", method: "POST", path: "/other", body: "{}", isUnknown: true},
				{what: "described read", method: "GET", path: "/v1/notes/n1"},
				{what: "described list", method: "GET", path: "/v1/notes"},
				{what: "described create", method: "POST", path: "/v1/notes", body: `{"id":"n1"}`, isUnknown: true},
				{what: "write without preconditions", method: "PUT", path: "/v1/memos/m1", body: `{"id":"m1"}`,
					runsOn: true},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", protocol, how, c.what), func(t *testing.T) {
					t.Parallel()
					b := newHeldBackend(t, protocol)
					g := newLeavingGateway(t, b, func(conf *config.Configuration) {
						conf.Upstreams[0].Protocol = protocol
						if strings.HasSuffix(how, "TLS") {
							conf.TLS = &config.ListenerTLS{CertFile: secure.Files.Cert, KeyFile: secure.Files.Key}
						}
					})
					client := dial(t, g.address)
					client.send(c.method, c.path, c.body)
					<-b.began
					client.leave()
					code := `"code":499`
					if c.runsOn {
						select {
						case <-b.ended:
							t.Error("the write was cancelled")
						case <-time.After(150 * time.Millisecond):
						}
						b.release <- struct{}{}
						code = `"code":200`
					} else {
						<-b.ended
						g.abandoned(t, 1)
					}
					log := g.audited(t)
					if !strings.Contains(log, code) ||
						strings.Contains(log, `"admission-gateway.io/outcome":"unknown"`) != c.isUnknown {
						t.Errorf("recorded is %s", log)
					}
				})
			}
		}
	}
}

// TestNotSentForClientsThatLeave: a write that waits is not sent if its client leaves, whatever it waits for.
func TestNotSentForClientsThatLeave(t *testing.T) {
	large := `{"id":"n1","text":"` + strings.Repeat("x", storage.HeavyText) + `"}`
	for what, c := range map[string]struct {
		change             func(*config.Configuration)
		before             func(t *testing.T, g *leavingGateway, b *heldBackend) // has the write wait
		method, path, body string
		most               int // requests of the backend
	}{
		"a connection": {
			change: func(c *config.Configuration) {
				c.Upstreams[0].MaxConnections, c.Upstreams[0].QueueTimeoutSeconds = 1, 60
			},
			before: func(t *testing.T, g *leavingGateway, b *heldBackend) {
				leaverByHTTP1(t, g.address, nil).send("GET", "/other", "")
				<-b.began
			},
			method: "POST", path: "/v1/notes", body: `{"id":"n1"}`, most: 1,
		},
		"the lock of its object": {
			before: func(t *testing.T, g *leavingGateway, b *heldBackend) {
				leaverByHTTP1(t, g.address, nil).send("PUT", "/v1/memos/m1", `{"id":"m1"}`)
				<-b.began
			},
			method: "PUT", path: "/v1/memos/m1", body: `{"id":"m1"}`, most: 2,
		},
		"its turn to do heavy work": {
			change: func(c *config.Configuration) { c.Limits.HeavyRequests = 1 },
			before: func(t *testing.T, g *leavingGateway, _ *heldBackend) {
				var busy memory.Reservation
				busy.Open(g.memory.Budget, nil)
				if !busy.Work() {
					t.Fatal("another one works")
				}
				t.Cleanup(busy.Close)
			},
			method: "POST", path: "/v1/notes", body: large,
		},
	} {
		for how, dial := range leavers {
			if strings.HasSuffix(how, "TLS") || len(c.body) >= storage.HeavyText && strings.HasPrefix(how, "HTTP/2") {
				continue // a body that does not fit the windows of HTTP/2 takes a client that reads
			}
			t.Run(what+"/"+how, func(t *testing.T) {
				t.Parallel()
				b := newHeldBackend(t, config.HTTP1Protocol)
				g := newLeavingGateway(t, b, func(conf *config.Configuration) {
					if c.change != nil {
						c.change(conf)
					}
				})
				c.before(t, g, b)
				client := dial(t, g.address)
				client.send(c.method, c.path, c.body)
				time.Sleep(30 * time.Millisecond) // for the request to wait
				client.leave()
				g.abandoned(t, 1)
				if got := b.requests(); len(got) > c.most {
					t.Errorf("the backend got %q", got)
				}
				b.releaseAll()
			})
		}
	}
}

// TestPauseForClientsThatLeave: a request that pauses before it is sent again is not sent again if its client leaves.
func TestPauseForClientsThatLeave(t *testing.T) {
	var sent atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	for how, dial := range leavers {
		if strings.HasSuffix(how, "TLS") {
			continue
		}
		for _, request := range [][3]string{{"GET", "/other", ""}, {"POST", "/v1/notes", `{"id":"n1"}`}} {
			sent.Store(0)
			g := newLeavingGateway(t, &heldBackend{url: s.URL}, func(*config.Configuration) {})
			g.routes.table[0].limits.Retry = &storage.Retry{Codes: []int{429}, Attempts: 3, Backoff: time.Hour}
			client := dial(t, g.address)
			client.send(request[0], request[1], request[2])
			testutil.Eventually(t, "the first attempt", func() bool { return sent.Load() == 1 })
			time.Sleep(10 * time.Millisecond)
			client.leave()
			g.abandoned(t, 1)
			if n := sent.Load(); n != 1 {
				t.Errorf("%s: %v was sent %d times", how, request, n)
			}
		}
	}
}

// TestTokensOfClientsThatLeave: a request that waits for the review of its token is over when its client leaves.
// Another one that waits for the same review goes on.
func TestTokensOfClientsThatLeave(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	var reached atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/other":
			reached.Add(1)
			return
		case tokenReviewTarget:
		default: // what the gateway asks for itself
			return
		}
		asked <- struct{}{}
		<-release
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"builder"}}}`)
	}))
	t.Cleanup(s.Close)
	releaseAll := sync.OnceFunc(func() { close(release) })
	t.Cleanup(releaseAll)
	g := newLeavingGateway(t, &heldBackend{url: s.URL}, func(c *config.Configuration) {
		file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), fmt.Sprintf(`
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams:
- {name: plain, endpoints: [%[1]s], dialect: Plain}
- {name: cluster, endpoints: [%[1]s], dialect: Kubernetes, tokenFile: %[2]s}
routes: [{upstream: plain}]
identity: {authenticators: [{tokenReview: {upstream: cluster}}], anonymous: Allow}
`, s.URL, secretFile(t, "gateways-own")))
		loaded, err := config.Load(file, config.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		*c = *loaded
	})
	const get = "GET /other HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer token\r\n\r\n"
	first, _ := h1test.Dial(t, g.address)
	h1test.Send(t, first, get)
	<-asked
	second, br := h1test.Dial(t, g.address)
	h1test.Send(t, second, get)
	_ = first.Close()
	g.abandoned(t, 1)
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	releaseAll()
	if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 || reached.Load() != 1 {
		t.Errorf("the other client is answered %d, and %d requests were sent", a.StatusCode, reached.Load())
	}
}

// TestWritesThatGoOn: with abandonedWrites Continue a write that was sent goes on, and a read does not.
func TestWritesThatGoOn(t *testing.T) {
	for how, dial := range leavers {
		if strings.HasSuffix(how, "TLS") {
			continue
		}
		b := newHeldBackend(t, config.HTTP1Protocol)
		g := newLeavingGateway(t, b,
			func(c *config.Configuration) { c.Upstreams[0].AbandonedWrites = config.ContinueWrites })
		write, read := dial(t, g.address), dial(t, g.address)
		write.send("POST", "/v1/notes", `{"id":"n1"}`)
		<-b.began
		read.send("GET", "/v1/notes/n1", "")
		<-b.began
		write.leave()
		read.leave()
		if ended := <-b.ended; ended != "GET /v1/notes/n1" {
			t.Errorf("%s: %s ended", how, ended)
		}
		g.abandoned(t, 1)
		b.release <- struct{}{}
		if log := g.audited(t); strings.Count(log, `"code":499`) != 1 || strings.Count(log, `"code":200`) != 1 ||
			strings.Contains(log, "outcome") {
			t.Errorf("%s: recorded is %s", how, log)
		}
	}
}

// TestHalfClosedClients: a listener that serves them answers clients that have closed their end, in order.
func TestHalfClosedClients(t *testing.T) {
	for _, half := range []config.HalfClose{config.AbandonHalfClosed, config.ServeHalfClosed} {
		b := newHeldBackend(t, config.HTTP1Protocol)
		address := testutil.FreeAddress(t)
		g := newLeavingGateway(t, b, func(c *config.Configuration) {
			c.Listen, c.Listeners = "", []config.Listener{{Name: "half", Listen: address, HalfClose: half}}
		})
		nc, br := h1test.Dial(t, g.address)
		h1test.Send(t, nc, "GET /free HTTP/1.1\r\nHost: gw\r\n\r\nGET /other HTTP/1.1\r\nHost: gw\r\n\r\nGET /free HTTP/1.1\r\nHost: gw\r\n\r\n")
		_ = nc.(*net.TCPConn).CloseWrite()
		if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
			t.Fatalf("%s: the first answer is %d", half, a.StatusCode)
		}
		<-b.began
		if half == config.AbandonHalfClosed {
			<-b.ended
			g.abandoned(t, 1)
			continue
		}
		time.Sleep(150 * time.Millisecond)
		b.release <- struct{}{}
		for range 2 {
			if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
				t.Errorf("%s: a later answer is %d", half, a.StatusCode)
			}
		}
	}
}

// TestAbandonedHeads: thousands of requests that clients reset at once, whatever they say of themselves, leave no
// connection to the backend in use, and others are served.
func TestAbandonedHeads(t *testing.T) {
	const streams = 128
	for _, protocol := range []config.HTTPProtocol{config.HTTP1Protocol, config.HTTP2Protocol} {
		b := newHeldBackend(t, protocol)
		g := newLeavingGateway(t, b, func(c *config.Configuration) { c.Upstreams[0].Protocol = protocol })
		client := g.routes.backends[0].client
		for range testutil.Amount(33, 4) {
			c := h2test.Dial(t, g.address)
			for i := range streams {
				id := uint32(2*i + 1)
				c.Head(t, id, true, append(h2test.Get("/other"), "content-type: application/grpc")...)
				h2test.Must(t, c.WriteRSTStream(id, http2.ErrCodeCancel))
			}
			_ = c.Conn.Close()
		}
		testutil.Eventually(t, "no connection to be in use", func() bool {
			open, idle := client.Conns()
			return open == idle && b.served.Load() == 0 && g.server.Active() == 0
		})
		nc, br := h1test.Dial(t, g.address)
		h1test.Send(t, nc, "GET /free HTTP/1.1\r\nHost: gw\r\n\r\n")
		if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
			t.Errorf("%s: then a client is answered %d", protocol, a.StatusCode)
		}
	}
}
