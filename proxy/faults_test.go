package proxy

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// fault deals, as a backend, with a connection after it has read a whole request.
type fault func(c net.Conn)

func answers(raw string) fault { return func(c net.Conn) { _, _ = io.WriteString(c, raw) } }
func dies(net.Conn)            {}
func hangs(c net.Conn)         { _, _ = io.Copy(io.Discard, c) }

// newFaultyBackend counts the requests of the first one's method that arrive whole. It does what the fault says, and
// closes.
func newFaultyBackend(t *testing.T, f fault) (address string, delivered *atomic.Int64) {
	t.Helper()
	delivered = &atomic.Int64{}
	var first atomic.Value
	return serveConns(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if first.CompareAndSwap(nil, r.Method); first.Load() == r.Method {
			delivered.Add(1)
		}
		f(c)
	}), delivered
}

// serveConns serves each connection on its own, and closes it then, until the test ends.
func serveConns(t testing.TB, serve func(c net.Conn)) (address string) {
	t.Helper()
	ln := listenBackend(t)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return ln.Addr().String()
}

// TestBackendFaults shows the answer to each fault of the backend, and that a write is delivered at most once (ERR-4).
func TestBackendFaults(t *testing.T) {
	const get = "GET " + widgetsPath + "/w1 HTTP/1.1\r\nHost: gw\r\n\r\n"
	create := string(scenario.JSON("POST "+widgetsPath, widget("")))
	for _, c := range []struct {
		name      string
		fault     fault
		request   string
		code      int
		reason    metav1.StatusReason
		retry     string
		delivered int64
	}{
		{"dies after a write", dies, create, 504, "Timeout", "", 1},
		{"dies after a read", dies, get, 502, "InternalError", "", 1},
		{"is too slow for a write", hangs, create, 504, "Timeout", "", 1},
		{"is too slow for a read", hangs, get, 504, "Timeout", "1", 1},
		{"answers what is not HTTP", answers("nonsense\r\n\r\n"), create, 504, "Timeout", "", 1},
		{"answers with two lengths", answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
			get, 502, "InternalError", "", 1},
		{"ends lines with a bare LF", answers("HTTP/1.1 200 OK\nContent-Length: 2\n\nab"), get, 502, "InternalError",
			"", 1},
		{"has a bare LF in its head", answers("HTTP/1.1 201 Created\r\nA: b\nContent-Length: 2\r\n\r\n{}"), create, 504,
			"Timeout", "", 1},
		{"has a head that is too large", answers("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 20_000) + "\r\n\r\n"),
			get, 502, "InternalError", "", 1},
		{"has a bad chunk size", answers(chunkedHead + "2 \r\n{}\r\n0\r\n\r\n"), get, 502, "InternalError", "", 1},
		{"has a bad chunk size, of a write",
			answers(strings.Replace(chunkedHead, "200 OK", "201 Created", 1) + "2 \r\n{}\r\n0\r\n\r\n"), create, 504,
			"Timeout", "", 1},
		{"has a chunk that is too long", answers(chunkedHead + "2\r\n{}}\r\n0\r\n\r\n"), get, 502, "InternalError", "",
			1},
		{"has a bad chunk size in an error",
			answers(strings.Replace(chunkedHead, "200 OK", "404 Not Found", 1) + "x\r\n"), get, 502, "InternalError",
			"", 1},
		{"has a bad trailer", answers(chunkedHead + "2\r\n{}\r\n0\r\nA b\r\n\r\n"), get, 502, "InternalError", "", 1},
		{"has trailers that are too long",
			answers(chunkedHead + "2\r\n{}\r\n0\r\nA: " + strings.Repeat("b", 9_000) + "\r\n\r\n"), get, 502,
			"InternalError", "", 1},
		{"breaks off the answer to a write", answers("HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nab"), create,
			504, "Timeout", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, delivered := newFaultyBackend(t, c.fault)
			cfg, err := config.Load("", config.Flags{Upstream: "http://" + address, Dialect: "Plain"})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Upstreams[0].ResponseTimeoutSeconds = 1
			set := policiestest.LoadFiles(t, "testdata/policies/widgets.yaml")
			gateway := startGateway(t, newTestGateway(t, cfg, func() *policies.Set { return set }))
			checkStatus(t, exchangeRaw(t, gateway, []byte(c.request)), c.code, c.reason, c.retry)
			if got := delivered.Load(); got != c.delivered {
				t.Errorf("the request was delivered %d times, want %d", got, c.delivered)
			}
		})
	}
}

func TestBackendUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close()
	gateway := startGateway(t, gatewayFor(t, t.TempDir(), address, nil))
	checkStatus(t, exchangeRaw(t, gateway, []byte("GET /v2/orders HTTP/1.1\r\nHost: gw\r\n\r\n")), 503,
		"ServiceUnavailable", "1")
}

// The client's own deadline passes (ERR-4).
func TestClientTimeout(t *testing.T) {
	address, _ := newFaultyBackend(t, hangs)
	gateway := startGateway(t, gatewayFor(t, t.TempDir(), address, []string{"policies=widgets"}))
	checkStatus(t, exchangeRaw(t, gateway, []byte("GET "+widgetsPath+"?timeout=200ms HTTP/1.1\r\nHost: gw\r\n\r\n")),
		504, "Timeout", "1")
}

// checkStatus compares a raw answer with code, reason and Retry-After, in header and body alike.
func checkStatus(t *testing.T, raw []byte, code int, reason metav1.StatusReason, retry string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(raw))), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var s metav1.Status
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		t.Fatalf("no Status: %v in %s", err, raw)
	}
	got := ""
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		got = strconv.Itoa(int(s.Details.RetryAfterSeconds))
	}
	if r.StatusCode != code || int(s.Code) != code || s.Reason != reason || r.Header.Get("Retry-After") != retry ||
		got != retry {
		t.Errorf("answered %s, want %d %s with Retry-After %q", raw, code, reason, retry)
	}
}

// A watch arrives event by event, and ends at the backend when the client goes away (RES-5).
func TestWatchStreams(t *testing.T) {
	events := make(chan string)
	closed := make(chan struct{})
	address, _ := newFaultyBackend(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
		go func() {
			_, _ = io.Copy(io.Discard, c)
			close(closed)
		}()
		for e := range events {
			_, _ = io.WriteString(c, "3\r\n"+e+"\r\n")
		}
		<-closed
	})
	gateway := startGateway(t, gatewayFor(t, t.TempDir(), address, []string{"policies=widgets"}))
	c, _ := dial(t, gateway)
	_, _ = io.WriteString(c, "GET "+widgetsPath+"?watch=true HTTP/1.1\r\nHost: gw\r\n\r\n")
	var r *http.Response
	for _, event := range []string{"[1]", "[2]", "[3]"} {
		events <- event
		if r == nil {
			var err error
			if r, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != event {
			t.Fatalf("got %q, %v; want %q, before the next was sent", got, err, event)
		}
	}
	_ = c.Close()
	select {
	case <-closed:
	case <-time.After(testutil.Patience):
		t.Error("the backend's stream goes on though the client has gone")
	}
	close(events)
}

func TestRoutes(t *testing.T) {
	backends := map[string]*recorder{"orders": newRecorder(t), "tenant": newRecorder(t), "rest": newRecorder(t)}
	c, err := config.Load("", config.Flags{Upstream: backends["rest"].URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams, c.Routes = nil, []config.Route{
		{PathPrefix: "/", Upstream: "rest"}, {PathPrefix: "/v2/orders", Upstream: "orders"},
		{Host: "a.example.com", PathPrefix: "/v2", Upstream: "tenant"},
	}
	for name, b := range backends {
		c.Upstreams = append(c.Upstreams, config.UpstreamSpec{Name: name, Endpoints: []string{b.URL()},
			Dialect: config.Plain})
	}
	set := noPolicies()
	gateway := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	for _, one := range []struct{ host, path, want string }{
		{"gw", "/v2/orders", "orders"}, {"gw", "/v2/orders/o1", "orders"}, {"gw", "/v2/orders?x=1", "orders"},
		{"gw", "/v2/ordersheets", "rest"},
		{"gw", "/", "rest"}, {"a.example.com", "/v2/orders", "tenant"}, {"A.Example.com:8080", "/v2", "tenant"},
		{"a.example.com", "/v3", "rest"},
	} {
		exchangeRaw(t, gateway, []byte("GET "+one.path+" HTTP/1.1\r\nHost: "+one.host+"\r\n\r\n"))
		for name, b := range backends {
			if got := b.Take(); (got != "") != (name == one.want) {
				t.Errorf("%s%s: %s got %q, want it at %s", one.host, one.path, name, got, one.want)
			}
		}
	}
}
