package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// usersOf is a file with the resource /users of a group; more are lines of its spec.
func usersOf(group, more string) string {
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: " + group + "}\nspec:\n" +
		"  group: " + group + "\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /users, item: '/users/{name}'}\n" + more
}

// TestScopes: a file's settings for some routes are checked against the configured routes.
func TestScopes(t *testing.T) {
	shop, blog := Route{Name: "shop", Host: "shop.example.com", PathPrefix: "/", Upstream: "shop"},
		Route{Host: "blog.example.com", PathPrefix: "/", Upstream: "blog"}
	inner := Route{Host: "inner.example.com", PathPrefix: "/", Upstream: "shop"}
	stripping, adding := Route{PathPrefix: "/shop", Target: "/", Upstream: "shop"},
		Route{PathPrefix: "/", Target: "/v2", Upstream: "shop"}
	closed := inner
	closed.IsClosed = true
	const limit = "---\napiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\nspec:\n  requests: 1\n  periodSeconds: 1\n"
	const document = "openapi: 3.0.3\ninfo: {title: shop, version: v1}\nx-admission-gateway-resource: {group: c.example.com, hosts: [c.example.com]}\n" +
		"paths:\n  /users:\n    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n  /users/{id}:\n    get: {responses: {}}\n    put: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n"
	for _, tt := range []struct {
		name   string
		files  []string
		routes []Route
		want   string
	}{
		{"two APIs", []string{usersOf("a", "  route: shop\n"), usersOf("b", "  upstream: blog\n")}, []Route{shop, blog},
			""},
		{"two APIs by hosts", []string{usersOf("a", "  hosts: [shop.example.com]\n"),
			usersOf("b", "  hosts: [blog.example.com]\n")}, []Route{shop, blog}, ""},
		{"nothing is known of routes",
			[]string{usersOf("a", "  route: nowhere\n"), usersOf("b", "  upstream: nothing\n")}, nil, ""},
		{"one path for all", []string{usersOf("a", ""), usersOf("b", "  route: shop\n")}, nil,
			"1.yaml:4: spec: path '/users' of 'users.b' must not match the same requests as path '/users' of 'users.a'\n" +
				"1.yaml:4: spec: path '/users/{name}' of 'users.b' must not match the same requests as path '/users/{name}' of 'users.a'\n"},
		{"one route for both", []string{usersOf("a", "  route: shop\n"), usersOf("b", "  upstream: shop\n")},
			[]Route{shop, blog},
			"1.yaml:8: spec.paths: path '/users' of 'users.b' must not match the same requests as path '/users' of 'users.a', as both are for the route 'shop'; `hosts`, `upstream` and `route` keep them apart\n" +
				"1.yaml:8: spec.paths: path '/users/{name}' of 'users.b' must not match the same requests as path '/users/{name}' of 'users.a', as both are for the route 'shop'; `hosts`, `upstream` and `route` keep them apart\n"},
		{"names that there are not",
			[]string{usersOf("a", "  route: shup\n"),
				usersOf("b", "  upstream: shop\n  hosts: [shop.example.com, c.example.com]\n") + limit +
					"  upstream: none\n"}, []Route{shop, blog}, "" +
				"0.yaml:9: spec.route: must be the `name` of a route of the configuration\n" +
				"1.yaml:10: spec.hosts[1]: must be the `host` of a route of the configuration\n" +
				"1.yaml:18: spec.upstream: must be the name of an upstream of the configuration: 'blog', 'shop'\n"},
		{"names that no route has together", []string{usersOf("a", "  upstream: shop\n  hosts: [blog.example.com]\n")},
			[]Route{shop, blog},
			"0.yaml:9: spec.upstream: no route of the configuration has all that `hosts`, `upstream` and `route` say, so that nothing here would have an effect\n"},
		{"a document", []string{document}, []Route{shop, blog},
			"0.yaml:3: x-admission-gateway-resource.hosts: must be the `host` of a route of the configuration\n"},
		{"another route to the same upstream", []string{usersOf("a", "  hosts: [shop.example.com]\n")},
			[]Route{shop, blog, inner},
			"0.yaml:8: spec.paths: warning: requests for '/users' by the route of the host 'inner.example.com' and the prefix '/' pass to the upstream 'shop' as if nothing described them: " +
				"widen `hosts`, `upstream` or `route`, or set `undescribed: Deny` for that route\n"},
		{"a route that strips its prefix", []string{usersOf("a", "  hosts: [shop.example.com]\n")},
			[]Route{shop, blog, stripping},
			"0.yaml:8: spec.paths: warning: requests for '/users' by the route of any host and the prefix '/shop' pass to the upstream 'shop' as if nothing described them: " +
				"widen `hosts`, `upstream` or `route`, or set `undescribed: Deny` for that route\n"},
		{"a route that adds another prefix", []string{usersOf("a", "  hosts: [shop.example.com]\n")},
			[]Route{shop, blog, adding}, ""},
		{"another route that is closed", []string{usersOf("a", "  hosts: [shop.example.com]\n")},
			[]Route{shop, blog, closed}, ""},
		{"a member misspelt", []string{usersOf("a", "  rout: shop\n")}, nil,
			"0.yaml:9: spec.rout: unknown field; did you mean `route`?\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, string(rune('0'+i))+".yaml"), []byte(text),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			g := Gateway{Routes: tt.routes}
			if tt.routes != nil {
				g.Upstreams = []string{"shop", "blog"}
			}
			got := ""
			for _, f := range CheckFor([]string{dir}, g) {
				got += strings.TrimPrefix(f.String(), dir+string(filepath.Separator)) + "\n"
			}
			if got != tt.want {
				t.Errorf("found\n%swant\n%s", got, tt.want)
			}
		})
	}
}
