package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestRewrites: what a route changes of requests, and that answers use the client's paths.
func TestRewrites(t *testing.T) {
	var authority string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+authority+"/base/users/1")
		w.Header().Set("Content-Location", "/base/v2/users")
		w.Header().Add("Set-Cookie", "a=1; Path=/; HttpOnly")
		w.Header().Add("Set-Cookie", "b=2; Path=/base/v2/users")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s, Host %s, prefix %q, forwarded host %q", r.Method, r.RequestURI, r.Host,
			r.Header.Values("X-Forwarded-Prefix"), r.Header.Values("X-Forwarded-Host"))
	}))
	t.Cleanup(server.Close)
	authority = strings.TrimPrefix(server.URL, "http://")
	_, address := configured(t, fmt.Sprintf(`
upstreams:
- {name: api, endpoints: ['%s/base/'], dialect: Plain}
routes:
- {name: whole, upstream: api}
- {name: shop, pathPrefix: /shop, upstream: api, stripPrefix: true, backendHost: Replace}
- {name: v2, pathPrefix: /api, upstream: api, stripPrefix: true, addPrefix: /v2, backendHost: 'api.internal:81'}
`, server.URL), strings.ReplaceAll(usersOf("shop.example.com", "cart", "  route: v2\n"), "/users", "/base/v2/users"))
	for _, tt := range []struct {
		request, body string
		code          int
		want          string // of the body, or part of a refusal
		headers       string // Location, Content-Location, cookies
	}{
		{"POST /x/y?a=b", "", 201, `POST /base/x/y?a=b, Host gw, prefix [], forwarded host ["gw"]`,
			"/users/1 /v2/users [a=1; Path=/; HttpOnly b=2; Path=/v2/users]"},
		{"POST /shop", "", 201, `POST /base, Host AUTHORITY, prefix ["/shop"], forwarded host ["gw"]`, "/shop/users/1 /shop/v2/users [a=1; Path=/shop; HttpOnly b=2; Path=/shop/v2/users]"},
		{"GET /shop/a%2Fb?c=..", "", 201, `GET /base/a%2Fb?c=.., Host AUTHORITY, prefix ["/shop"], forwarded host ["gw"]`, "/shop/users/1 /shop/v2/users [a=1; Path=/shop; HttpOnly b=2; Path=/shop/v2/users]"},
		{"POST /api/users", `{"cart":"c"}`, 201, `POST /base/v2/users, Host api.internal:81, prefix ["/api"], forwarded host ["gw"]`, "http://AUTHORITY/base/users/1 /api/users [a=1; Path=/api; HttpOnly b=2; Path=/api/users]"},
		{"POST /api/users", `{"post":"c"}`, 422, "cart: Required value", "  []"},
		{"GET /shop/../admin", "", 400, "could be read as '/admin', which is routed in another way", "  []"},
		{"GET /shop/%2e%2e%2fadmin", "", 400, "could be read as '/admin', which is routed in another way", "  []"},
		{"GET /shop/x/../y", "", 400, "must not contain '..' as a segment", "  []"},
		{"GET /shop/x%2f%2e%2e/y", "", 400, "must not contain '..' as a segment", "  []"},
		{"GET /shop//evil.example.com/", "", 201, `GET /base//evil.example.com/, Host`, "/shop/users/1 /shop/v2/users [a=1; Path=/shop; HttpOnly b=2; Path=/shop/v2/users]"},
	} {
		nc, br := dial(t, address)
		length := ""
		if tt.body != "" {
			length = fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(tt.body))
		}
		send(t, nc, fmt.Sprintf("%s HTTP/1.1\r\nHost: gw\r\nX-Forwarded-Prefix: /untrusted\r\n%s\r\n%s", tt.request,
			length, tt.body))
		a, _ := readAnswer(t, br, false)
		got := fmt.Sprintf("%s %s %s", a.Header.Get("Location"), a.Header.Get("Content-Location"),
			a.Header.Values("Set-Cookie"))
		got, want := strings.ReplaceAll(got, authority, "AUTHORITY"),
			strings.ReplaceAll(tt.headers, authority, "AUTHORITY")
		if a.StatusCode != tt.code || !strings.Contains(strings.ReplaceAll(string(a.Content), authority, "AUTHORITY"),
			tt.want) || got != want {
			t.Errorf("%s is answered %d %s\n%s\nwant %s\n%s", tt.request, a.StatusCode, a.Content, got, tt.want, want)
		}
		_ = nc.Close()
	}
}

// TestOwnRequestsBelowBase: what the gateway asks on its own account is below the path of the endpoints too: the
// collections of StateSources, one read as it comes, health checks, and the question for the dialect.
func TestOwnRequestsBelowBase(t *testing.T) {
	backend := newRecorder(t)
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"),
		"apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
			"upstreams: [{name: api, endpoints: ['"+backend.URL()+
			"/base'], dialect: Plain, healthCheck: {path: /healthz}}]\n")
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if got := clientConfig(&c.Upstreams[0]).HealthCheck.Path; got != "/base/healthz" {
		t.Errorf("health checks ask for %s", got)
	}
	c.Upstreams[0].HealthCheck = nil
	set := policiestest.LoadFiles(t)
	g := newTestGateway(t, c, func() *policies.Set { return set })
	api := g.Backend("api", "")
	if _, err := api.Send(t.Context(), state.Request{Method: "GET", Target: "/version", Limit: 100}); err != nil {
		t.Fatal(err)
	}
	_, stream, err := api.Open(t.Context(), "/classes?a=b", 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Close()
	got := backend.Take()
	for _, want := range []string{"GET /base/version HTTP/1.1\r\n", "GET /base/classes?a=b HTTP/1.1\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the backend got %q, want %q in it", got, want)
		}
	}
}

// TestOwnLocation: a plain API that names itself by its own address is not shown by it, unless the client asked for
// that.
func TestOwnLocation(t *testing.T) {
	var authority string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://"+authority+"/users/1")
		w.Header().Set("Content-Location", "http://"+authority+"/users")
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	authority = strings.TrimPrefix(server.URL, "http://")
	for dialect, want := range map[string]string{"Plain": "/users/1 /users",
		"Kubernetes": "http://HOST/users/1 http://HOST/users"} {
		_, address := configured(t, fmt.Sprintf("upstreams: [{name: api, endpoints: ['%s'], dialect: %s}]\nroutes: [{upstream: api}]\n", server.URL, dialect), "")
		for host, want := range map[string]string{"gw": want, authority: "http://HOST/users/1 http://HOST/users"} {
			nc, br := dial(t, address)
			send(t, nc, "POST /users HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 0\r\n\r\n")
			a, _ := readAnswer(t, br, false)
			if got := strings.ReplaceAll(a.Header.Get("Location")+" "+a.Header.Get("Content-Location"), authority,
				"HOST"); a.StatusCode != 201 || got != want {
				t.Errorf("%s, Host %s: answered %d %s, want %s", dialect, host, a.StatusCode, got, want)
			}
			_ = nc.Close()
		}
	}
}
