package proxy

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// Headers that name another path, or the client's user, mean nothing on a backend if files say
// anything of it. If nothing of it is described, it gets them as they came.
func TestForeignFields(t *testing.T) {
	const (
		overrides = "X-Original-URL: /v2/orders/1\r\nx-rewrite-url: /v2/orders/2\r\nX-Original-Uri: /a\r\nX-Script-Name: /b\r\n"
		clients   = "True-Client-IP: 203.0.113.1\r\nx-client-ip: 203.0.113.2\r\nX-Cluster-Client-IP: 203.0.113.3\r\nProxy: http://proxy.example\r\n"
		kept      = "X-Tenant: a\r\n"
	)
	resources := filepath.Join("testdata", "policies", "widgets.yaml")
	limit := policiestest.Write(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: all}\nspec: {requests: 1000, periodSeconds: 1}\n")
	for _, tt := range []struct {
		name, file string
		words      []string
		prefix     string // of the one route
		described  bool
		trusted    bool
	}{
		{name: "no files", prefix: "/"},
		{name: "a described resource", file: resources, prefix: "/", described: true},
		{name: "a described resource, below the route", file: resources, prefix: "/apis", described: true},
		{name: "a described resource, above the route", file: resources,
			prefix: "/apis/example.com/v1/namespaces/team-a", described: true},
		{name: "a described resource to which no route leads", file: resources, prefix: "/v2"},
		{name: "a limit that names no resource", file: limit, prefix: "/v2"},
		{name: "a Kubernetes backend", words: []string{"kubernetes"}, prefix: "/", described: true},
		{name: "a trusted proxy", file: resources, words: []string{"trust=127.0.0.1/32"}, prefix: "/", described: true,
			trusted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t)
			g := gatewayFor(t, cmp.Or(tt.file, t.TempDir()), backend.Addr().String(), tt.words)
			prefix := strings.TrimSuffix(tt.prefix, "/")
			g.routes.table[0].spans = []span{{prefix, prefix}}
			if err := g.routes.compile(g.routes.table, nil, nil); err != nil {
				t.Fatal(err)
			}
			address := startGateway(t, g)
			path := strings.TrimSuffix(tt.prefix, "/") + "/x"
			if tt.prefix == "/apis/example.com/v1/namespaces/team-a" {
				path = tt.prefix + "/gadgets"
			} else if tt.prefix == "/apis" {
				path = tt.prefix
			}
			ask := func(header string) (int, string, string) {
				backend.Take()
				nc, br := dial(t, address)
				defer func() { _ = nc.Close() }()
				send(t, nc, "GET "+path+" HTTP/1.1\r\nHost: gw\r\n"+header+"\r\n")
				a, _ := readAnswer(t, br, false)
				return a.StatusCode, string(a.Content), backend.Take()
			}
			arrives := func(header string) string {
				return "GET " + path + " HTTP/1.1\r\nHost: gw\r\n" + header + ourLines + "\r\n"
			}
			for _, line := range strings.SplitAfter(strings.TrimSuffix(overrides, "\r\n"), "\r\n") {
				line = strings.TrimSuffix(line, "\r\n") + "\r\n"
				code, body, got := ask(kept + line)
				name, _, _ := strings.Cut(line, ":")
				switch {
				case !tt.described:
					if code != 200 || got != arrives(kept+line) {
						t.Errorf("%q is answered %d %s; the backend got\n%s", line, code, body, got)
					}
				case code != 400 || got != "" ||
					!strings.Contains(body, "the request has the header '"+name+
						"': a request must not name its path outside the request line"):
					t.Errorf("%q is answered %d %s; the backend got\n%s", line, code, body, got)
				}
			}
			want := kept
			if !tt.described || tt.trusted {
				want = clients + kept
			}
			if code, body, got := ask(clients + kept); code != 200 || got != arrives(want) {
				t.Errorf("answered %d %s; the backend got\n%s", code, body, got)
			}
		})
	}
}

// Another upstream of the same gateway gets what it always got: nothing of it is described.
func TestForeignFieldsOfAnotherUpstream(t *testing.T) {
	described, other := newRecorder(t), newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: described.URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	second := c.Upstreams[0]
	second.Name, second.Endpoints = "other", []string{other.URL()}
	c.Upstreams = append(c.Upstreams, second)
	c.Routes = append(c.Routes, config.Route{PathPrefix: "/v2", Upstream: "other"})
	set := policiestest.LoadFiles(t, filepath.Join("testdata", "policies", "widgets.yaml"))
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	for path, want := range map[string]int{"/v2/x": 200, "/x": 400} {
		nc, br := dial(t, address)
		send(t, nc, "GET "+path+" HTTP/1.1\r\nHost: gw\r\nX-Original-URL: /apis/example.com/v1\r\n\r\n")
		if a, _ := readAnswer(t, br, false); a.StatusCode != want {
			t.Errorf("%s is answered %d %s", path, a.StatusCode, a.Content)
		}
		_ = nc.Close()
	}
	if got := described.Take(); got != "" {
		t.Errorf("the described backend got\n%s", got)
	}
}
