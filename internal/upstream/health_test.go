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

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// What counts as a healthy answer, and how others are reported.
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
		{answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
			want: "the answer has the status 101"},
		{answer: "", want: "i/o timeout"},
	} {
		s := newScripted(t, c.answer)
		client := newTestClient(t, s, Config{})
		timeout := time.Minute
		if c.answer == "" {
			timeout = 50 * time.Millisecond
		}
		client.checker.config.HealthCheck = &HealthCheck{Path: "/healthz?verbose", Timeout: timeout, Status: c.status}
		err := client.checker.check(client.pool.set.All()[0])
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
	two := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer two.Close()
	changes := make(chan balance.Change, 100)
	client, err := New(Config{
		Endpoints: []string{one.URL, two.URL},
		HealthCheck: &HealthCheck{Path: "/readyz", Period: 2 * time.Millisecond, Timeout: time.Minute,
			Thresholds: balance.Thresholds{Unhealthy: 2, Healthy: 2}},
		OnChange: func(c balance.Change) { changes <- c },
	})
	if err != nil {
		t.Fatal(err)
	}
	var watch, resp message.Response
	for client.pool.set.All()[0].Addr != "" {
		// Until one of the watches is the first server's: the other one answers at once.
		if err := client.Do(request("GET", "/watch", ""), &watch); err != nil {
			t.Fatal(err)
		}
		if watch.IsStream() {
			break
		}
	}
	sick.Store(true)
	if c := <-changes; c.Event != balance.Unhealthy || c.Endpoint != one.Listener.Addr().String() ||
		c.Cause != "the answer has the status 500" {
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
	if s := client.State().Endpoints[0]; s.Status != balance.EndpointUnhealthy || s.InFlight != 1 || s.Cause == "" {
		t.Errorf("its state is %+v", s)
	}
	close(release)
	if event, err := io.ReadAll(watch.Stream()); err != nil || string(event) != "event" {
		t.Errorf("its stream had %q, %v", event, err)
	}
	sick.Store(false)
	if c := <-changes; c.Event != balance.Healthy {
		t.Fatalf("got %+v", c)
	}
	for others.Load() == before {
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	stacks := make([]byte, 1<<20)
	testutil.Eventually(t, "the checks of a client that is closed end", func() bool {
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*checker).watch")
	})
}

// Checks begin for addresses that come, and end for addresses that go.
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
	client, err := New(Config{Endpoints: []string{one.URL},
		HealthCheck: &HealthCheck{Path: "/", Period: time.Millisecond, Timeout: time.Minute,
			Thresholds: balance.Thresholds{Unhealthy: 1, Healthy: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the checks begin", func() bool { return count("one") >= 3 })
	before := client.pool.set.All()[0]
	client.resolver.adopt(t.Context(), client.origins[0], []string{two.Listener.Addr().String()})
	testutil.Eventually(t, "the checks of the new address begin", func() bool { return count("two") >= 3 })
	if client.pool.onRemoval(before, func() {}) {
		t.Error("an endpoint that was removed can be checked")
	}
	client.Close()
}

// A server that takes connections and says nothing is unhealthy after the timeout.
func TestSilentServerIsUnhealthy(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	changes := make(chan balance.Change, 10)
	client, err := New(Config{
		Endpoints: []string{"http://" + ln.Addr().String()}, OnChange: func(c balance.Change) { changes <- c },
		HealthCheck: &HealthCheck{Path: "/", Period: time.Hour, Timeout: time.Millisecond,
			Thresholds: balance.Thresholds{Unhealthy: 3, Healthy: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if c := <-changes; c.Event != balance.Unhealthy || !strings.Contains(c.Cause, "timeout") {
		t.Errorf("got %+v", c)
	}
}
