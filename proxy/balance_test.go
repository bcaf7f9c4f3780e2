package proxy

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// Each setting reaches the client of the backend.
func TestClientConfig(t *testing.T) {
	u := config.UpstreamSpec{
		Endpoints: []string{"http://a"}, Dialect: config.Plain, Protocol: config.AutoProtocol, ConnectTimeoutSeconds: 1,
		ResponseTimeoutSeconds: 2, BodyTimeoutSeconds: 3, StreamTimeoutSeconds: 4,
		IdleTimeoutSeconds: 5, QueueTimeoutSeconds: 6, MaxConnections: 7,
		Balance: config.Balance{
			ResolvePeriodSeconds: 8, MaxConnectionsPerEndpoint: 9, MaxPendingRequests: 10,
			Ejection: config.Ejection{ConsecutiveFailures: 11, BaseSeconds: 12, MaxSeconds: 13, MaxEjectedPercent: 14},
			HealthCheck: &config.HealthCheck{Path: "/readyz", PeriodSeconds: 15, TimeoutSeconds: 16,
				UnhealthyThreshold: 17, HealthyThreshold: 18, ExpectedStatus: 19},
			Retries: config.Retries{BudgetPercent: 20, MinPerSecond: 21}, SlowStartSeconds: 25,
			CircuitBreaker: &config.CircuitBreaker{ConsecutiveFailures: 22, OpenSeconds: 23, MaxOpenSeconds: 24},
		},
	}
	want := upstream.Config{
		Endpoints: []string{"http://a"}, ResolvePeriod: 8 * time.Second, Protocol: upstream.Auto,
		Timeouts: upstream.Timeouts{
			Connect: time.Second, Answer: 2 * time.Second, Body: 3 * time.Second, Stream: 4 * time.Second,
			Idle: 5 * time.Second,
		},
		Limits: upstream.Limits{Wait: 6 * time.Second, Conns: 7, ConnsPerEndpoint: 9, Pending: 10},
		Ejection: balance.Ejection{Failures: 11, Answers: true, Base: 12 * time.Second, Max: 13 * time.Second,
			Percent: 14},
		HealthCheck: &upstream.HealthCheck{
			Path: "/readyz", Period: 15 * time.Second, Timeout: 16 * time.Second, Status: 19,
			Thresholds: balance.Thresholds{Unhealthy: 17, Healthy: 18},
		},
		Retries: &balance.RetryBudget{Percent: 20, PerSecond: 21}, SlowStart: 25 * time.Second,
		Breaker: circuit.Policy{Failures: 22, Open: 23 * time.Second, MaxOpen: 24 * time.Second},
	}
	if got := clientConfig(&u); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	u.Dialect, want.Ejection.Answers = config.Kubernetes, false
	want.Watches = &upstream.Watches{}
	if got := clientConfig(&u); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	u.StreamTimeoutSeconds, want.Timeouts.Stream, want.Watches = 0, 0,
		&upstream.Watches{Period: 30 * time.Second, Grace: 10 * time.Second}
	if got := clientConfig(&u); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for _, test := range []struct {
		dialect config.Dialect
		written config.HTTPProtocol
		want    upstream.Protocol
	}{
		{config.Plain, "", upstream.HTTP1}, {config.Plain, config.HTTP2Protocol, upstream.HTTP2},
		{config.Kubernetes, "", upstream.Auto}, {config.Kubernetes, config.HTTP1Protocol, upstream.HTTP1},
	} {
		if u.Dialect, u.Protocol = test.dialect, test.written; clientConfig(&u).Protocol != test.want {
			t.Errorf("the protocol '%s' of the dialect '%s' is %d", u.Protocol, u.Dialect, clientConfig(&u).Protocol)
		}
	}
}

// A backend of three servers: one is not there, one answers 503 for a while. Clients notice little
// of it, the log and the state show it, and each write arrives once.
func TestBackendWithSeveralServers(t *testing.T) {
	var mu sync.Mutex
	came := make(map[string]int)
	var failing atomic.Bool
	failing.Store(true)
	serve := func(sometimes bool) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			came[r.Method+" "+r.URL.Path]++
			mu.Unlock()
			if sometimes && failing.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		}))
		t.Cleanup(s.Close)
		return s
	}
	well, ill := serve(false), serve(true)
	c, err := config.Load("", config.Flags{Upstream: "http://" + testutil.FreeAddress(t), Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	u := &c.Upstreams[0]
	u.Endpoints = append(u.Endpoints, ill.URL, well.URL)
	u.Dialect = config.Plain
	u.Ejection = config.Ejection{ConsecutiveFailures: 3, BaseSeconds: 3600, MaxSeconds: 3600, MaxEjectedPercent: 67}
	metrics, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	set := policiestest.LoadFiles(t, t.TempDir())
	g, err := New(Options{
		Config: c, Policies: func() *policies.Set { return set }, Limiter: ratelimit.New(0), States: newStates(t, set),
		Metrics: metrics,
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	address := startGateway(t, g)
	codes := make(map[string]int)
	for i := range 60 {
		method := []string{"GET", "PUT"}[i%2]
		answer := exchangeRaw(t, address, []byte(method+" /v2/orders/"+strconv.Itoa(i)+" HTTP/1.1\r\nHost: gateway\r\n"+
			map[string]string{"GET": "", "PUT": "Content-Type: application/json\r\nContent-Length: 2\r\n"}[method]+
			"\r\n"+map[string]string{"PUT": "{}"}[method]))
		codes[string(answer[len("HTTP/1.1 "):len("HTTP/1.1 200")])]++
	}
	if codes["503"] != 3 || codes["200"] != 57 {
		t.Errorf("the answers were %v", codes)
	}
	for request, n := range came {
		if n != 1 {
			t.Errorf("%s came %d times", request, n)
		}
	}
	s := g.Upstreams()[0]
	var statuses []string
	for _, e := range s.Endpoints {
		statuses = append(statuses, e.Status.String())
	}
	if s.Name != "default" || strings.Join(statuses, " ") != "Ejected Ejected Ready" || s.Ejections != 2 ||
		s.Retried != 3 {
		t.Errorf("the state is %+v", s)
	}
	logged := log.String()
	for _, e := range s.Endpoints[:2] {
		line := "level=WARN msg=\"a server of the backend fails and is passed over\" upstream=default endpoint=" + e.Address + " until="
		if strings.Count(logged, line) != 1 {
			t.Errorf("the log has no line\n%s\nbut\n%s", line, logged)
		}
	}
}

// Every event has words for the log.
func TestChangesAreLogged(t *testing.T) {
	var log syncBuffer
	g := &common{log: slog.New(slog.NewTextHandler(&log, nil))}
	for e := balance.Ejected; e <= balance.CircuitClosed; e++ {
		g.upstreamChanged("orders", balance.Change{Event: e, Endpoint: "10.0.0.1:80", Cause: "because"})
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	seen := make(map[string]bool)
	for _, line := range lines {
		_, message, _ := strings.Cut(line, "msg=")
		if strings.HasPrefix(message, `""`) || seen[message] ||
			!strings.HasSuffix(message, "upstream=orders endpoint=10.0.0.1:80 cause=because") {
			t.Errorf("logged: %s", line)
		}
		seen[message] = true
	}
	if len(lines) != int(balance.CircuitClosed)+1 {
		t.Errorf("logged:\n%s", log.String())
	}
}

// EVT-1: a failure that repeats is counted each time, and logged once.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var log syncBuffer
	metrics, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &common{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: metrics}
	for range 100 {
		g.upstreamFailed("orders", &upstream.Error{Kind: upstream.Unreachable, Cause: io.ErrUnexpectedEOF})
		g.upstreamFailed("orders", &upstream.Error{Kind: upstream.CircuitOpen, Cause: io.ErrUnexpectedEOF})
		g.upstreamFailed("more", &upstream.Error{Kind: upstream.Busy, Cause: io.ErrUnexpectedEOF})
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		_, line, _ = strings.Cut(line, "level=")
		got = append(got, line)
	}
	if want := []string{
		`WARN msg="the backend failed" upstream=orders kind=Unreachable cause="unexpected EOF" times=1`,
		`WARN msg="the backend failed" upstream=orders kind=CircuitOpen cause="unexpected EOF" times=1`,
		`WARN msg="the backend failed" upstream=more kind=Busy cause="unexpected EOF" times=1`,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("logged:\n%s", strings.Join(got, "\n"))
	}
	page := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if line := `gateway_upstream_errors_total{reason="Unreachable",upstream="orders"} 100`; !strings.Contains(
		page.Body.String(), line) {
		t.Errorf("the metrics lack %s", line)
	}
}

// What the configuration lets pass as an endpoint the client can use.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"http://127.0.0.1:9000", "https://orders.example.com", "http://[::1]:80/", "http://[fe80::1%25eth0]:1",
		"http://a:", "HTTP://A.", "http://localhost",
		"http://a:0", "http://u@a", "http://a/b", "http://a?", "http://a#b", "http://[::1", "http://a%2fb", "//a",
		"http://", "ftp://a", "http://a b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		c, err := config.Load("", config.Flags{Upstream: endpoint, Dialect: "Kubernetes"})
		if err != nil || endpoint == "" {
			return
		}
		settings := clientConfig(&c.Upstreams[0])
		settings.ResolvePeriod = 0
		client, err := upstream.New(settings)
		if err != nil {
			t.Fatalf("%q: %v", endpoint, err)
		}
		defer client.Close()
		address := client.State().Endpoints[0].Address
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || strings.ContainsAny(address, "/?#@ ") {
			t.Errorf("%q: the address is %q, %v", endpoint, address, err)
		}
	})
}
