package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
)

type answer struct {
	Code              int
	ContentType, Body string
}

func get(s http.Handler, method, target string) answer {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return answer{w.Code, w.Header().Get("Content-Type"), w.Body.String()}
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
	expect := func(target string, want answer) {
		t.Helper()
		if got := get(s, "GET", target); got != want {
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
	expect("/readyz?verbose", answer{200, text, "[+]policies ok\n[+]listener ok\n[+]draining ok\nreadyz check passed\n"})
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
				LastFailure: &admin.Failure{Time: time.Unix(1_700_000_060, 0).UTC(), Findings: []string{"demo/limits.yaml:3: spec.requests: must be an integer"}},
			}
		},
		Upstreams: func() admin.Upstreams {
			until := time.Unix(1_700_000_000, 0).UTC()
			return admin.Upstreams{Upstreams: []admin.Upstream{{
				Name: "orders", Circuit: "Closed", Connections: 3, IdleConnections: 1, Retries: 4, Ejections: 1,
				Endpoints: []admin.Endpoint{
					{Address: "10.0.0.1:9000", Host: "orders.example.com:9000", Status: "Ready", Connections: 3, RequestsInFlight: 2},
					{Address: "10.0.0.2:9000", Host: "orders.example.com:9000", Status: "Ejected", EjectedUntil: &until, ConsecutiveFailures: 5},
					{Address: "10.0.0.3:9000", Host: "orders.example.com:9000", Status: "Unhealthy", HealthCheck: "the answer has the status 500"},
				},
				UnresolvedNames: []admin.UnresolvedName{{Host: "more.example.com:80", Message: "no such host"}},
			}}}
		},
	})
	for _, c := range []struct {
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
		{"GET", "/debug/pprof/", answer{404, jsonT, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the admin listener has no /debug/pprof/: it serves /livez, /readyz, /metrics, /policies and /upstreams","reason":"NotFound","code":404}` + "\n"}},
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
		if got := get(s, c.method, c.target); got != c.want {
			t.Errorf("%s %s answered\n%+v, want\n%+v", c.method, c.target, got, c.want)
		}
	}
}

func TestServeAndShutdown(t *testing.T) {
	s := admin.New(admin.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 {
		t.Errorf("GET /livez answered %d, %v", resp.StatusCode, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}
