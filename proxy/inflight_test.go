package proxy

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// slowBackend is a backend that answers what asks for /v2/slow when it is let.
type slowBackend struct {
	*recorder
	arrived chan string // the heads of requests for /v2/slow
	let     chan struct{}
}

// pausedBackend starts a backend of that kind.
func pausedBackend(t *testing.T) *slowBackend {
	h := &slowBackend{recorder: newRecorder(t), arrived: make(chan string, 32), let: make(chan struct{})}
	h.Reply = func(_ int, head, _ string) (string, bool) {
		switch {
		case strings.HasPrefix(head, "GET /v2/slow"):
			h.arrived <- head
			<-h.let
		case strings.HasPrefix(head, "GET /v2/broken"):
			return "", false
		case strings.HasPrefix(head, "GET /v2/events"):
			return chunkedHead + "5\r\nhello\r\n", true
		}
		return smallReply, true
	}
	return h
}

// newSlowBackend starts a gateway in front of such a backend, with one policy whose spec is given.
func newSlowBackend(t *testing.T, spec string) (*slowBackend, *Gateway, string) {
	t.Helper()
	h := pausedBackend(t)
	paths := policiestest.Write(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: crowd}\nspec: "+spec)
	g := gatewayFor(t, paths, h.Addr().String(), []string{"kubernetes"})
	return h, g, startGateway(t, g)
}

// inquire sends a request on a connection of its own, and returns a function that reads the answer.
func inquire(t *testing.T, address, path string) func() answer {
	t.Helper()
	nc, br := dial(t, address)
	_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
	send(t, nc, "GET "+path+" HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n")
	return func() answer {
		t.Helper()
		got, _ := readAnswer(t, br, false)
		return got
	}
}

// ERR-3: when no more requests may be served, some wait their turn and the others get a
// Retry-After.
func TestRequestsWaitTheirTurn(t *testing.T) {
	h, g, address := newSlowBackend(t, "{key: Global, maxInFlight: 1, queueLength: 1, queueTimeoutSeconds: 30}")
	first := inquire(t, address, "/v2/slow")
	<-h.arrived
	second := inquire(t, address, "/v2/second")
	testutil.Becomes(t, 1, g.limiter.Waiting)
	third := inquire(t, address, "/v2/third")()
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the rate limit 'crowd' allows 1 request at a time in all: try again after 1 second","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`
	if third.StatusCode != 429 || third.Header.Get("Retry-After") != "1" || string(third.Content) != want {
		t.Errorf("the third is answered %d, Retry-After %s, %s", third.StatusCode, third.Header.Get("Retry-After"),
			third.Content)
	}
	if got := h.Take(); strings.Contains(got, "/v2/second") || strings.Contains(got, "/v2/third") {
		t.Errorf("the backend got %q", got)
	}
	metrics := httptest.NewRecorder()
	g.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{"gateway_rate_limited_requests_total{policy=\"crowd\"} 1\n",
		"gateway_requests_waiting 1\n"} {
		if !strings.Contains(metrics.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	close(h.let)
	if got := first(); got.StatusCode != 200 {
		t.Errorf("the first is answered %d", got.StatusCode)
	}
	if got := second(); got.StatusCode != 200 || got.Header.Get("RateLimit") != "" {
		t.Errorf("the second is answered %d, %v", got.StatusCode, got.Header)
	}
}

// The preset for requests in flight serves 20 requests of a user at a time, and lets the next one wait.
func TestInFlightPreset(t *testing.T) {
	h := pausedBackend(t)
	g := gatewayFor(t, "../policies/library/ratelimits/in-flight.yaml", h.Addr().String(), []string{"kubernetes"})
	address := startGateway(t, g)
	var answers []func() answer
	for range 20 {
		answers = append(answers, inquire(t, address, "/v2/slow"))
	}
	for range 20 {
		<-h.arrived
	}
	next := inquire(t, address, "/v2/next")
	testutil.Becomes(t, 1, g.limiter.Waiting)
	if got := h.Take(); strings.Contains(got, "/v2/next") {
		t.Errorf("the backend got %q", got)
	}
	close(h.let)
	for _, answer := range answers {
		if got := answer(); got.StatusCode != 200 {
			t.Errorf("one of the 20 is answered %d", got.StatusCode)
		}
	}
	next()
}

// While requests are refused second after second, Retry-After grows.
func TestTurnedAwayForLonger(t *testing.T) {
	h, g, address := newSlowBackend(t, "{key: Global, maxInFlight: 1}")
	first := inquire(t, address, "/v2/slow")
	<-h.arrived
	set := g.policies().Limits()
	var c ratelimit.Charges
	set.Charge(&c, &ratelimit.Request{Info: &resource.Info{Verb: resource.VerbGet}})
	at := time.Now().Add(-4 * time.Second) // so far many were, four seconds long
	for range 4 {
		at = at.Add(time.Second)
		for range 100 {
			g.limiter.Dropped(&c.All()[0], at)
		}
	}
	got := inquire(t, address, "/v2/second")()
	if wait, err := strconv.Atoi(got.Header.Get("Retry-After")); got.StatusCode != 429 || err != nil || wait < 3 {
		// 4, or one less after a pause
		t.Errorf("answered %d, Retry-After %s", got.StatusCode, got.Header.Get("Retry-After"))
	}
	close(h.let)
	first()
}

// A request that waited too long, by the policy or by its own timeout, gets a Retry-After.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spec, path string }{
		"by the policy": {"{key: Global, maxInFlight: 1, queueLength: 1}", "/v2/second"},
		"by the client's": {"{key: Global, maxInFlight: 1, queueLength: 1, queueTimeoutSeconds: 60}",
			"/apis/example.com/v1/widgets/w?timeout=1s"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, address := newSlowBackend(t, c.spec)
			first := inquire(t, address, "/v2/slow")
			<-h.arrived
			if got := inquire(t, address, c.path)(); got.StatusCode != 429 || got.Header.Get("Retry-After") != "1" {
				t.Errorf("answered %d, Retry-After %s", got.StatusCode, got.Header.Get("Retry-After"))
			}
			close(h.let)
			first()
		})
	}
}

// A client that goes away while it waits frees its place in the queue, and its request does not
// reach the backend.
func TestClientLeavesQueue(t *testing.T) {
	h, g, address := newSlowBackend(t, "{key: Global, maxInFlight: 1, queueLength: 1, queueTimeoutSeconds: 60}")
	first := inquire(t, address, "/v2/slow")
	<-h.arrived
	nc, _ := dial(t, address)
	send(t, nc, "GET /v2/left HTTP/1.1\r\nHost: gw\r\n\r\n")
	testutil.Becomes(t, 1, g.limiter.Waiting)
	_ = nc.Close()
	testutil.Becomes(t, 0, g.limiter.Waiting)
	next := inquire(t, address, "/v2/next")
	testutil.Becomes(t, 1, g.limiter.Waiting)
	close(h.let)
	if a, b := first().StatusCode, next().StatusCode; a != 200 || b != 200 {
		t.Errorf("the others are answered %d and %d", a, b)
	}
	if got := h.Take(); strings.Contains(got, "/v2/left") {
		t.Errorf("the backend got %q", got)
	}
}

// A gateway that will stop soon lets no request wait (ERR-4).
func TestNobodyWaitsWhileDraining(t *testing.T) {
	h, g, address := newSlowBackend(t, "{key: Global, maxInFlight: 1, queueLength: 1, queueTimeoutSeconds: 60}")
	first := inquire(t, address, "/v2/slow")
	<-h.arrived
	g.BeginDrain()
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the gateway is about to stop, and lets no more requests wait","reason":"ServiceUnavailable","details":{"retryAfterSeconds":5},"code":503}`
	if got := inquire(t, address, "/v2/second")(); got.StatusCode != 503 || got.Header.Get("Retry-After") != "5" ||
		string(got.Content) != want {
		t.Errorf("answered %d, Retry-After %s, %s", got.StatusCode, got.Header.Get("Retry-After"), got.Content)
	}
	close(h.let)
	first()
}

// Places come back however a request ends, and a watch has one only until it begins.
func TestPlacesComeBack(t *testing.T) {
	h, g, address := newSlowBackend(t, "{key: Global, maxInFlight: 1}")
	close(h.let)
	for _, c := range []struct {
		path string
		code int
	}{{"/v2/slow", 200}, {"/v2/broken", 502}, {"/a/../b", 400}, {"/v2/slow", 200}} {
		if got := inquire(t, address, c.path)(); got.StatusCode != c.code {
			t.Errorf("%s is answered %d, want %d", c.path, got.StatusCode, c.code)
		}
	}
	watcher, br := dial(t, address)
	send(t, watcher, "GET /v2/events?watch=true HTTP/1.1\r\nHost: gw\r\n\r\n")
	if _, err := br.Peek(1); err != nil {
		t.Fatal(err)
	}
	if got := inquire(t, address, "/v2/slow")(); got.StatusCode != 200 {
		t.Errorf("beside a watch a request is answered %d", got.StatusCode)
	}
	if g.limiter.Waiting() != 0 {
		t.Error("somebody waits")
	}
}
