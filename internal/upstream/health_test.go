package upstream

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The thresholds, without a network.
func TestHealthThresholds(t *testing.T) {
	var told []string
	p := newTestPool(t, Config{OnChange: func(c Change) { told = append(told, fmt.Sprint(c.Event, " ", c.Endpoint, " ", c.Cause)) }}, "10.0.0.1", "10.0.0.2")
	p.config.HealthCheck = &HealthCheck{Unhealthy: 3, Healthy: 2}
	bad := io.ErrUnexpectedEOF
	for i, c := range []struct {
		err       error
		unhealthy bool
	}{
		{bad, true}, // the first decides alone
		{nil, true}, {bad, true}, {nil, true}, {nil, false},
		{bad, false}, {bad, false}, {nil, false},
		{bad, false}, {bad, false}, {bad, true},
		{nil, true}, {nil, false},
	} {
		p.checked(p.all[0], c.err, time.Now())
		ready := 2
		if c.unhealthy {
			ready = 1
		}
		if p.all[0].unhealthy != c.unhealthy || len(p.ready) != ready {
			t.Errorf("check %d: unhealthy is %v, %d endpoints are ready", i, p.all[0].unhealthy, len(p.ready))
		}
	}
	const one, other = "Unhealthy 10.0.0.1:80 unexpected EOF", "Healthy 10.0.0.1:80 "
	if got := strings.Join(told, "; "); got != strings.Join([]string{one, other, one, other}, "; ") {
		t.Errorf("told: %s", got)
	}
}

// What counts as a healthy answer, and what is said of others.
func TestHealthCheckAnswers(t *testing.T) {
	for _, c := range []struct {
		answer string
		status int
		want   string
	}{
		{answer: okReply},
		{answer: "HTTP/1.1 204 No Content\r\n\r\n"},
		{answer: "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"},
		{answer: "HTTP/1.1 100 Continue\r\n\r\n" + okReply},
		{answer: "HTTP/1.1 500 E\r\nContent-Length: 0\r\n\r\n", want: "the answer has the status 500"},
		{answer: "HTTP/1.1 404 E\r\nContent-Length: 0\r\n\r\n", want: "the answer has the status 404"},
		{answer: "HTTP/1.1 429 E\r\nContent-Length: 0\r\n\r\n", status: 429},
		{answer: okReply, status: 204, want: "the answer has the status 200, not 204"},
		{answer: cut, want: "unexpected EOF"},
		{answer: "SSH-2.0-OpenSSH_9.6\r\n", want: "the answer does not start with a status line"},
		{answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", want: "the answer has the status 101"},
		{answer: "", want: "i/o timeout"},
	} {
		s := newScripted(t, c.answer)
		client := newTestClient(t, s, Config{})
		timeout := time.Minute
		if c.answer == "" {
			timeout = 50 * time.Millisecond
		}
		client.config.HealthCheck = &HealthCheck{Path: "/healthz?verbose", Timeout: timeout, Status: c.status}
		err := client.checkHealth(client.pool.all[0])
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %v, want %q", c.answer, err, c.want)
		}
		if requests, _ := s.seen(); len(requests) != 1 || requests[0] != "GET /healthz?verbose" {
			t.Errorf("the backend saw %q", requests)
		}
		if open, _ := client.Conns(); open != 0 || client.Dialled() != 0 {
			t.Errorf("a check counts as a connection of requests")
		}
	}
}

// A backend's server that fails its checks gets no requests, keeps its streams,
// and comes back; no goroutine outlives the client.
func TestHealthChecks(t *testing.T) {
	var others atomic.Int64
	var sick atomic.Bool
	release := make(chan bool)
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && r.Host != "":
			if sick.Load() {
				w.WriteHeader(500)
			}
		case r.URL.Path == "/watch":
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "event")
		default:
			others.Add(1)
		}
	}
	one := httptest.NewServer(http.HandlerFunc(serve))
	defer one.Close()
	two := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer two.Close()
	changes := make(chan Change, 100)
	client, err := New(Config{
		Endpoints:   []string{one.URL, two.URL},
		HealthCheck: &HealthCheck{Path: "/readyz", Period: 2 * time.Millisecond, Timeout: time.Minute, Unhealthy: 2, Healthy: 2},
		OnChange:    func(c Change) { changes <- c },
	})
	if err != nil {
		t.Fatal(err)
	}
	var watch, resp fasthttp.Response
	for client.pool.all[0].addr != "" {
		// Until one of the watches is the first server's: the other one answers at once.
		if err := client.Do(request("GET", "/watch", ""), &watch); err != nil {
			t.Fatal(err)
		}
		if watch.IsBodyStream() {
			break
		}
	}
	sick.Store(true)
	if c := <-changes; c.Event != Unhealthy || c.Endpoint != one.Listener.Addr().String() || c.Cause != "the answer has the status 500" {
		t.Fatalf("got %+v", c)
	}
	before := others.Load()
	for range 50 {
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Fatal(err)
		}
	}
	if n := others.Load() - before; n != 0 {
		t.Errorf("the unhealthy server got %d requests", n)
	}
	if s := client.State().Endpoints[0]; s.Status != EndpointUnhealthy || s.InFlight != 1 || s.Cause == "" {
		t.Errorf("its state is %+v", s)
	}
	close(release)
	if event, err := io.ReadAll(watch.BodyStream()); err != nil || string(event) != "event" {
		t.Errorf("its stream had %q, %v", event, err)
	}
	sick.Store(false)
	if c := <-changes; c.Event != Healthy {
		t.Fatalf("got %+v", c)
	}
	for others.Load() == before {
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	stacks := make([]byte, 1<<20)
	for range 10_000 {
		if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "watchHealth") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the checks of a client that is closed go on")
}

// Whether checks begin for addresses that come, and end for those that go.
func TestHealthChecksFollowAddresses(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]int)
	serve := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			seen[name]++
			mu.Unlock()
		}))
		t.Cleanup(s.Close)
		return s
	}
	count := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[name]
	}
	one, two := serve("one"), serve("two")
	client, err := New(Config{Endpoints: []string{one.URL}, HealthCheck: &HealthCheck{Path: "/", Period: time.Millisecond, Timeout: time.Minute, Unhealthy: 1, Healthy: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for count("one") < 3 {
		time.Sleep(time.Millisecond)
	}
	ctx := t.Context()
	o := client.pool.all[0].origin
	for _, e := range client.pool.set(o, []string{two.Listener.Addr().String()}, time.Now()) {
		client.watchHealth(ctx, e)
	}
	for count("two") < 3 {
		time.Sleep(time.Millisecond)
	}
	removed := &endpoint{addr: one.Listener.Addr().String(), origin: o, removed: true}
	client.watchHealth(ctx, removed)
	client.Close()
	if removed.checked.known {
		t.Error("an endpoint that was removed is checked")
	}
}

// A server that takes connections and says nothing is unhealthy after the timeout.
func TestSilentServerIsUnhealthy(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	changes := make(chan Change, 10)
	client, err := New(Config{
		Endpoints: []string{"http://" + ln.Addr().String()}, OnChange: func(c Change) { changes <- c },
		HealthCheck: &HealthCheck{Path: "/", Period: time.Hour, Timeout: time.Millisecond, Unhealthy: 3, Healthy: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if c := <-changes; c.Event != Unhealthy || !strings.Contains(c.Cause, "timeout") {
		t.Errorf("got %+v", c)
	}
}
