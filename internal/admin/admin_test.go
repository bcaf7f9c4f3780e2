package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
)

type answer struct {
	Code              int
	ContentType, Body string
}

// client asks a server over connections of its own.
type client struct {
	t       *testing.T
	address string
}

// serve serves s until the test ends.
func serve(t *testing.T, s *admin.Server) client {
	t.Helper()
	return serveOn(t, s, listen(t))
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serveOn(t *testing.T, s *admin.Server, l net.Listener) client {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v, want nil", err)
		}
	})
	return client{t, l.Addr().String()}
}

func (c client) get(method, target string) answer {
	c.t.Helper()
	return c.getFrom(method, "127.0.0.1:8081", target)
}

func (c client) getFrom(method, host, target string) answer {
	c.t.Helper()
	got, header := c.send(method, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, target,
		host))
	got.ContentType = header.Get("Content-Type")
	return got
}

// send sends a request as it is, and reads the answer and the end of the connection.
func (c client) send(method, request string) (answer, http.Header) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		c.t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	got, err := http.ReadResponse(reader, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("%.200q is answered with %v", request, err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		c.t.Errorf("after the answer to %.200q come %q and %v", request, rest, err)
	}
	return answer{Code: got.StatusCode, Body: string(body)}, got.Header
}

const (
	text  = "text/plain; charset=utf-8"
	jsonT = "application/json"
)

func TestHealth(t *testing.T) {
	policies, listener := errors.New("no policy set is compiled yet"), errors.New("not listening yet")
	s := admin.New(admin.Options{Ready: []admin.Check{
		{Name: "policies", Probe: func() error { return policies }},
		{Name: "listener", Probe: func() error { return listener }},
	}})
	c := serve(t, s)
	expect := func(target string, want answer) {
		t.Helper()
		if got := c.get("GET", target); got != want {
			t.Errorf("GET %s answered\n%+v, want\n%+v", target, got, want)
		}
	}
	expect("/livez", answer{200, text, "ok\n"})
	expect("/readyz", answer{503, text, "[-]policies failed: no policy set is compiled yet\n[-]listener failed: not listening yet\n[+]draining ok\nreadyz check failed\n"})
	policies = nil
	expect("/readyz", answer{503, text, "[+]policies ok\n[-]listener failed: not listening yet\n[+]draining ok\nreadyz check failed\n"})
	expect("/readyz/policies", answer{200, text, "ok\n"})
	expect("/readyz/listener", answer{503, text, "[-]listener failed: not listening yet\nreadyz check failed\n"})
	expect("/readyz/nothing", answer{404, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"/readyz has no check 'nothing'","reason":"NotFound","code":404}` + "\n"})
	listener = nil
	expect("/readyz", answer{200, text, "ok\n"})
	expect("/readyz?verbose",
		answer{200, text, "[+]policies ok\n[+]listener ok\n[+]draining ok\nreadyz check passed\n"})
	age, checked := time.Duration(0), error(nil)
	aged := serve(t, admin.New(admin.Options{Ready: []admin.Check{
		{Name: "cluster", Probe: func() error { return checked }, Age: func() time.Duration { return age }},
	}}))
	for _, test := range []struct {
		age     time.Duration
		checked error
		want    string
	}{
		{0, nil, "[+]cluster ok\n"},
		{12*time.Second + 900*time.Millisecond, nil, "[+]cluster ok (last known to be right 12 s ago)\n"},
		{90 * time.Second, admin.Warning{Err: errors.New("it is silent")},
			"[+]cluster ok, but: it is silent (last known to be right 90 s ago)\n"},
	} {
		age, checked = test.age, test.checked
		if got, want := aged.get("GET", "/readyz?verbose"),
			(answer{200, text, test.want + "[+]draining ok\nreadyz check passed\n"}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	}
	s.Drain()
	expect("/readyz", answer{503, text, "[+]policies ok\n[+]listener ok\n[-]draining failed: the gateway is shutting down\nreadyz check failed\n"})
	expect("/livez", answer{200, text, "ok\n"})
}

func TestPages(t *testing.T) {
	s := admin.New(admin.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", text)
			_, _ = io.WriteString(w, "gateway_requests_in_flight 0\n")
		}),
		Policies: func() admin.Policies {
			return admin.Policies{
				Generation: 2, Hash: "abcd", LoadTime: time.Unix(1_700_000_000, 0).UTC(),
				Files: []admin.PolicyFile{{Path: "demo/limits.yaml", Objects: []admin.PolicyObject{
					{APIVersion: "admission-gateway.io/v1alpha1", Kind: "RateLimitPolicy", Name: "per-client"},
				}}},
				LastFailure: &admin.Failure{Time: time.Unix(1_700_000_060, 0).UTC(),
					Findings: []string{"demo/limits.yaml:3: spec.requests: must be an integer"}},
			}
		},
		Upstreams: func() admin.Upstreams {
			until := time.Unix(1_700_000_000, 0).UTC()
			return admin.Upstreams{Upstreams: []admin.Upstream{{
				Name: "orders", Circuit: "Closed", Connections: 3, IdleConnections: 1, Retries: 4, Ejections: 1,
				Endpoints: []admin.Endpoint{
					{Address: "10.0.0.1:9000", Host: "orders.example.com:9000", Status: "Ready", Connections: 3,
						RequestsInFlight: 2},
					{Address: "10.0.0.2:9000", Host: "orders.example.com:9000", Status: "Ejected", EjectedUntil: &until,
						ConsecutiveFailures: 5},
					{Address: "10.0.0.3:9000", Host: "orders.example.com:9000", Status: "Unhealthy",
						HealthCheck: "the answer has the status 500"},
				},
				UnresolvedNames: []admin.UnresolvedName{{Host: "more.example.com:80", Message: "no such host"}},
			}}}
		},
	})
	c := serve(t, s)
	for _, test := range []struct {
		method, target string
		want           answer
	}{
		{"GET", "/metrics", answer{200, text, "gateway_requests_in_flight 0\n"}},
		{"GET", "/policies", answer{200, jsonT, `{
  "generation": 2,
  "hash": "abcd",
  "loadTime": "2023-11-14T22:13:20Z",
  "files": [
    {
      "path": "demo/limits.yaml",
      "objects": [
        {
          "apiVersion": "admission-gateway.io/v1alpha1",
          "kind": "RateLimitPolicy",
          "name": "per-client"
        }
      ]
    }
  ],
  "lastFailure": {
    "time": "2023-11-14T22:14:20Z",
    "findings": [
      "demo/limits.yaml:3: spec.requests: must be an integer"
    ]
  }
}
`}},
		{"POST", "/policies", answer{405, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"/policies does not support POST: the admin listener is for reading","reason":"MethodNotAllowed","code":405}` + "\n"}},
		{"GET", "/debug/pprof/", answer{404, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the admin listener has no /debug/pprof/: it serves /metrics, /policies, /upstreams, /livez and /readyz","reason":"NotFound","code":404}` + "\n"}},
		{"GET", "/upstreams", answer{200, jsonT, `{
  "upstreams": [
    {
      "name": "orders",
      "circuit": "Closed",
      "connections": 3,
      "idleConnections": 1,
      "pendingRequests": 0,
      "retries": 4,
      "ejections": 1,
      "endpoints": [
        {
          "address": "10.0.0.1:9000",
          "host": "orders.example.com:9000",
          "status": "Ready",
          "consecutiveFailures": 0,
          "connections": 3,
          "requestsInFlight": 2
        },
        {
          "address": "10.0.0.2:9000",
          "host": "orders.example.com:9000",
          "status": "Ejected",
          "ejectedUntil": "2023-11-14T22:13:20Z",
          "consecutiveFailures": 5,
          "connections": 0,
          "requestsInFlight": 0
        },
        {
          "address": "10.0.0.3:9000",
          "host": "orders.example.com:9000",
          "status": "Unhealthy",
          "healthCheck": "the answer has the status 500",
          "consecutiveFailures": 0,
          "connections": 0,
          "requestsInFlight": 0
        }
      ],
      "unresolvedNames": [
        {
          "host": "more.example.com:80",
          "message": "no such host"
        }
      ]
    }
  ]
}
`}},
	} {
		if got := c.get(test.method, test.target); got != test.want {
			t.Errorf("%s %s answered\n%+v, want\n%+v", test.method, test.target, got, test.want)
		}
		if test.method != "GET" {
			continue
		}
		// An answer to HEAD has the head of the answer to GET, and no body.
		want := answer{test.want.Code, test.want.ContentType, ""}
		if got := c.get("HEAD", test.target); got != want {
			t.Errorf("HEAD %s answered\n%+v, want\n%+v", test.target, got, want)
		}
	}
}

// TestHeads holds the header lines of all answers: what a page says is neither kept by caches nor
// taken for another type.
func TestHeads(t *testing.T) {
	c := serve(t, admin.New(admin.Options{Policies: func() admin.Policies { return admin.Policies{} }}))
	for _, test := range []struct {
		method, target string
		want           map[string]string
	}{
		{"GET", "/livez", map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Content-Length": "3", "Content-Type": text}},
		{"HEAD", "/livez", map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Content-Length": "3", "Content-Type": text}},
		{"HEAD", "/policies", map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Content-Length": "91", "Content-Type": jsonT}},
		{"DELETE", "/policies", map[string]string{"Allow": "GET, HEAD", "Content-Length": "189",
			"Content-Type": jsonT}},
	} {
		_, header := c.send(test.method, test.method+" "+test.target+
			" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if header.Get("Date") == "" {
			t.Errorf("%s %s has no Date", test.method, test.target)
		}
		header.Del("Date")
		header.Del("Connection")
		got := map[string]string{}
		for name := range header {
			got[name] = header.Get(name)
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%s %s has the header lines\n%v, want\n%v", test.method, test.target, got, test.want)
		}
	}
}

// TestUnreadable: what is no request, or too large a one, is refused, and its connection ends.
func TestUnreadable(t *testing.T) {
	c := serve(t, admin.New(admin.Options{}))
	const head = " HTTP/1.1\r\nHost: localhost\r\n"
	for _, test := range []struct {
		request string
		code    int
		message string
	}{
		{"GET /livez" + head + strings.Repeat("x", 16<<10-len("GET /livez"+head)), 431,
			"the head of a request to the admin listener may have 16384 bytes"},
		{"POST /livez" + head + "Content-Length: 16385\r\n\r\n", 413, "the body of a request to the admin listener may have 16384 bytes, and a question to the playground 131072"},
		{"GET /livez HTTP/1.1\r\n\r\n", 400, "the admin listener cannot read the request"},
		{"GET /livez" + head + "Host: localhost\r\n\r\n", 400, "the admin listener cannot read the request"},
		{"GET /livez" + head + "no line\r\n\r\n", 400, "the admin listener cannot read the request"},
	} {
		got, _ := c.send("GET", test.request)
		if got.Code != test.code || !strings.Contains(got.Body, `"message":"`+test.message+`"`) {
			t.Errorf("%.60q answered %+v, want %d and '%s'", test.request, got, test.code, test.message)
		}
	}
}

// TestPanic: a page that panics is answered, and the server goes on.
func TestPanic(t *testing.T) {
	var log lockedBuffer
	c := serve(t, admin.New(admin.Options{
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
		Metrics:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no metrics") }),
		Upstreams: func() admin.Upstreams { panic("no upstreams") },
	}))
	for page, logged := range map[string]string{"/metrics": "no metrics", "/upstreams": "no upstreams"} {
		want := answer{500, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: the admin listener failed to answer: see the gateway's log",` +
			`"reason":"InternalError","details":{"causes":[{"message":"the admin listener failed to answer: see the gateway's log"}]},"code":500}` + "\n"}
		if got := c.get("GET", page); got != want {
			t.Errorf("GET %s answered\n%+v, want\n%+v", page, got, want)
		}
		if !strings.Contains(log.String(), logged) {
			t.Errorf("the log does not say '%s':\n%s", logged, log.String())
		}
	}
	if got := c.get("GET", "/livez"); got.Code != 200 {
		t.Errorf("then GET /livez answered %+v", got)
	}
}

// TestHealthHasAPlace: health is answered whatever other clients of the listener do: they send a part of a head, wait
// after an answer, or read none of it. Pages have fewer places than there are, and all that wait for a page beyond them
// are told.
func TestHealthHasAPlace(t *testing.T) {
	const others = 600
	large := strings.Repeat("a", 8<<20) // more than sockets keep
	for _, c := range []struct {
		name, request string
		isSecure      bool
		answered      int // how many of the others read an answer 503
	}{
		{"half a head", "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", false, 0},
		{"half a head by TLS", "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", true, 0},
		{"no byte", "", false, 0},
		{"a request that was answered", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", false, 0},
		{"an answer that is not read", "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", false, others - 384},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := admin.New(admin.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, large)
			})})
			authority := credentialstest.NewAuthority(t, "authority")
			l, asking := listen(t), http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			address, scheme := l.Addr().String(), "http"
			if c.isSecure {
				certificate := authority.Server(t, []string{"127.0.0.1"})
				l, scheme = tls.NewListener(l, certificate.Config(t)), "https"
				asking.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: authority.Pool()}
			}
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			var opened []net.Conn
			defer func() {
				for _, conn := range opened {
					_ = conn.Close()
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				if err := <-served; err != nil {
					t.Errorf("Serve returned %v", err)
				}
			}()
			mustBeWell := func() {
				t.Helper()
				r, err := asking.Get(scheme + "://" + address + "/livez")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Body.Close() }()
				if r.StatusCode != 200 {
					t.Fatalf("/livez answers %d", r.StatusCode)
				}
			}
			for i := range others {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				opened = append(opened, conn)
				if c.isSecure {
					conn = tls.Client(conn, &tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1"})
				}
				if _, err := io.WriteString(conn, c.request); err != nil {
					t.Fatal(err)
				}
				if i%100 == 99 {
					mustBeWell()
				}
			}
			for range 3 {
				mustBeWell()
			}
			if c.answered == 0 {
				return
			}
			refused := 0
			for _, conn := range opened {
				code := make([]byte, len("HTTP/1.1 503"))
				if _, err := io.ReadFull(conn, code); err == nil && string(code) == "HTTP/1.1 503" {
					refused++
				}
			}
			if refused != c.answered {
				t.Errorf("%d requests were answered 503, want %d", refused, c.answered)
			}
		})
	}
}

// TestPlainHTTPToTLS: a client that speaks no TLS reads why it gets no answer.
func TestPlainHTTPToTLS(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "authority")
	certificate := authority.Server(t, []string{"127.0.0.1"})
	l := tls.NewListener(listen(t), certificate.Config(t))
	c := serveOn(t, admin.New(admin.Options{}), l)
	got, _ := c.send("GET", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if want := (answer{Code: 400, Body: "the client sent an HTTP request to an HTTPS server\n"}); got != want {
		t.Errorf("answered %+v, want %+v", got, want)
	}
	https := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}}}
	defer https.CloseIdleConnections()
	r, err := https.Get("https://" + c.address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil || r.StatusCode != 200 {
		t.Errorf("answered %d, %v", r.StatusCode, err)
	}
}

// TestShutdown: an answer under way is sent, idle connections end, and Serve returns.
func TestShutdown(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := admin.New(admin.Options{Upstreams: func() admin.Upstreams {
		close(begun)
		<-goOn
		return admin.Upstreams{}
	}})
	l := listen(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := client{t, l.Addr().String()}
	idle, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	if _, err := io.WriteString(idle, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(idle)
	r, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() {
		got, _ := c.send("GET", "GET /upstreams HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answered <- got
	}()
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shut := make(chan error, 1)
	go func() { shut <- s.Shutdown(ctx) }()
	if _, err := reader.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection ends with %v", err)
	}
	close(goOn)
	if got := <-answered; got.Code != 200 {
		t.Errorf("the answer under way is %+v", got)
	}
	if err := <-shut; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

// lockedBuffer takes the lines of a log.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
