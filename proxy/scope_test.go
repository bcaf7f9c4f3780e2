package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// configured makes a gateway of a configuration file and policy files, and serves it.
func configured(t *testing.T, configuration string, files ...string) (*Gateway, string) {
	t.Helper()
	text := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n" + configuration
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), text)
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	set := policiestest.Load(t, files...)
	g := newTestGateway(t, c, func() *policies.Set { return set })
	return g, startGateway(t, g)
}

// usersOf is a file with the resource /users of a group, whose objects must have a field.
func usersOf(group, field, scope string) string {
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: " + group + "}\nspec:\n" +
		"  group: " + group + "\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /users, item: '/users/{name}'}\n" +
		"  schema: {openAPIV3Schema: {type: object, required: [" + field + "], properties: {" + field +
		": {type: string}}}}\n" + scope
}

// namedAPI is an API that says its name and what it was asked.
func namedAPI(t *testing.T, name string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s: %s %s", name, r.Method, r.RequestURI)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTwoAPIs: two APIs have the same path, and each obeys its own file and its own limit.
func TestTwoAPIs(t *testing.T) {
	const limit = "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\nspec:\n  requests: 1\n  periodSeconds: 1000\n  match: {verbs: [options]}\n  route: shop\n"
	_, address := configured(t, fmt.Sprintf(`
upstreams:
- {name: shop, endpoints: ['%s'], dialect: Plain}
- {name: blog, endpoints: ['%s'], dialect: Plain}
routes:
- {name: shop, host: shop.example.com, upstream: shop}
- {host: blog.example.com, upstream: blog}
- {name: inner, host: inner.example.com, pathPrefix: /open, upstream: blog}
`, namedAPI(t, "shop"), namedAPI(t, "blog")),
		usersOf("shop.example.com", "cart", "  route: shop\n"),
		usersOf("blog.example.com", "post", "  hosts: [blog.example.com]\n"), limit)
	for _, tt := range []struct {
		host, request, body string
		code                int
		want                string // part of the answer
	}{
		{"shop", "POST /users", `{"cart":"c"}`, 200, "shop: POST /users"},
		{"shop", "POST /users", `{"post":"p"}`, 422, `"message":"User.shop.example.com `},
		{"blog", "POST /users", `{"post":"p"}`, 200, "blog: POST /users"},
		{"blog", "POST /users", `{"cart":"c"}`, 422, `"message":"User.blog.example.com `},
		{"inner", "POST /open/x", `{"cart":"c"}`, 200, "blog: POST /open/x"},
		{"inner", "POST /open/../users", `{}`, 400, "could be read as '/users', which is routed in another way"},
		{"inner", "POST /open/../open/../users", `{}`, 400,
			"could be read as '/users', which is routed in another way"},
		{"shop", "OPTIONS /x", "", 200, "shop: OPTIONS /x"},
		{"shop", "OPTIONS /x", "", 429, "few"},
		{"blog", "OPTIONS /x", "", 200, "blog: OPTIONS /x"},
		{"blog", "OPTIONS /x", "", 200, "blog: OPTIONS /x"},
	} {
		nc, br := dial(t, address)
		length := ""
		if tt.body != "" {
			length = fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(tt.body))
		}
		send(t, nc, fmt.Sprintf("%s HTTP/1.1\r\nHost: %s.example.com\r\n%s\r\n%s", tt.request, tt.host, length,
			tt.body))
		if a, _ := readAnswer(t, br, false); a.StatusCode != tt.code || !strings.Contains(string(a.Content), tt.want) {
			t.Errorf("%s of %s with %s is answered %d %s", tt.request, tt.host, tt.body, a.StatusCode, a.Content)
		}
		_ = nc.Close()
	}
}
