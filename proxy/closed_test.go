package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestUndescribedClosed: an upstream and a route of it say what happens to requests that no file
// describes, the route takes precedence. What a file describes is served in any case.
func TestUndescribedClosed(t *testing.T) {
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: backend.URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams[0].Undescribed = config.DenyWrites
	name := c.Upstreams[0].Name
	c.Routes = []config.Route{
		{PathPrefix: "/", Upstream: name},
		{Host: "open", PathPrefix: "/", Upstream: name, Undescribed: config.PassUndescribed},
		{Host: "closed", PathPrefix: "/", Upstream: name, Undescribed: config.DenyUndescribed},
	}
	set := policiestest.LoadFiles(t, filepath.Join("testdata", "policies", "widgets.yaml"))
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	const (
		gone    = `"reason":"NotFound"`
		refused = `"reason":"MethodNotAllowed"`
	)
	for _, tt := range []struct {
		host, request string
		code          int
		body          string // part of it
		allow         string
	}{
		{"readable", "GET /x", 200, "", ""},
		{"readable", "OPTIONS /x", 200, "", ""},
		{"readable", "POST /x", 405, refused, "GET, HEAD, OPTIONS"},
		{"readable", "DELETE /x", 405, refused, "GET, HEAD, OPTIONS"},
		{"readable", "PURGE /x", 405, refused, "GET, HEAD, OPTIONS"},
		{"readable", "GET /x HTTP/1.1\r\nX-HTTP-Method-Override: DELETE", 400,
			"must not name its method outside the request line", ""},
		{"readable", "GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket", 403, "another protocol", ""},
		{"readable", "GET /apis/example.com/v1/namespaces/a/widgets/w", 200, "", ""},
		{"readable", "TRACE /x", 405, refused, "GET, HEAD, OPTIONS"},
		{"open", "POST /x", 200, "", ""},
		{"open", "TRACE /x", 405, refused, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{"open", "GET /x", 200, "", ""},
		{"closed", "GET /x", 404, gone, ""},
		{"closed", "OPTIONS /x", 404, gone, ""},
		{"closed", "POST /x", 404, gone, ""},
		{"closed", "TRACE /x", 405, refused, ""},
		{"closed", "TRACE /apis/example.com/v1/namespaces/a/widgets/w", 405, refused,
			"GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
		{"closed", "GET /apis/example.com/v1/namespaces/a/widgets/w", 200, "", ""},
	} {
		line, more, _ := strings.Cut(tt.request, " HTTP/1.1\r\n")
		if more != "" {
			more += "\r\n"
		}
		backend.Take()
		nc, br := dial(t, address)
		send(t, nc, fmt.Sprintf("%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", line, tt.host, more))
		a, _ := readAnswer(t, br, strings.HasPrefix(line, "HEAD"))
		if a.StatusCode != tt.code || !strings.Contains(string(a.Content), tt.body) ||
			a.Header.Get("Allow") != tt.allow {
			t.Errorf("%s of %s is answered %d %s, Allow %q", tt.request, tt.host, a.StatusCode, a.Content,
				a.Header.Get("Allow"))
		}
		if got := backend.Take(); (got != "") != (tt.code == 200) {
			t.Errorf("%s of %s: the backend got %q", tt.request, tt.host, got)
		}
		_ = nc.Close()
	}
}

// TestUpgradeOfDescribedPath: a WebSocket is no way around what a file describes. A client that offers
// another version of HTTP is served without it, as by any server that has no other.
func TestUpgradeOfDescribedPath(t *testing.T) {
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: backend.URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	set := policiestest.LoadFiles(t, filepath.Join("testdata", "policies", "widgets.yaml"))
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	const collection = "/apis/example.com/v1/namespaces/a/widgets"
	for _, tt := range []struct {
		target, protocol string
		code             int
	}{
		{collection, "websocket", 400},
		{collection + "/w", "WebSocket", 400},
		{collection + "/w/status", "websocket", 400},
		{collection + "/w", "SPDY/3.1", 400},
		{collection + "/w", "h2c", 200},
		{collection + "/w", "TLS/1.0", 200},
	} {
		nc, br := dial(t, address)
		send(t, nc, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", tt.target,
			tt.protocol))
		a, _ := readAnswer(t, br, false)
		if got := backend.Take(); a.StatusCode != tt.code || (got != "") != (tt.code == 200) ||
			strings.Contains(got, "Upgrade") {
			t.Errorf("%s in %s is answered %d %s; the backend got %q", tt.target, tt.protocol, a.StatusCode, a.Content,
				got)
		}
		if tt.code == 400 && !strings.Contains(string(a.Content), "is not served in the protocol '"+tt.protocol+"'") {
			t.Errorf("%s in %s: %s", tt.target, tt.protocol, a.Content)
		}
		_ = nc.Close()
	}
}
