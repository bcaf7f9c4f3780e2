package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// misspelled are paths that servers read as /admin, or below it, and that begin with /pub.
var misspelled = []string{
	"/pub/../admin", "/pub/%2e%2e/admin", "/pub/.%2E/admin/users", "/pub/..%2fadmin", "/pub/..%5cadmin",
	`/pub/..\admin`, "/pub//../../admin", "/pub/./../admin",
	"/pub/..;/admin", "/pub/..;x=1/admin", "/pub/.;/../admin", "/pub/a/../../admin/x", "/pub/%252e%252e/admin",
	"/pub/..%252fadmin", "/pub/%2e%2e%2fadmin", "/pub/..%00/admin",
	"/pub/..%20/admin", "/pub/%c0%ae%c0%ae/admin",
}

// misspelledAlone are paths that servers read as /admin, and that begin with neither.
var misspelledAlone = []string{"//admin", "/%61dmin", "/%2561dmin", "/admin;x", "/admin%2fx", `/admin\x`, "/admin%5cx",
	"/x/../admin", "/./admin", "/admin%20", "/admin%00", "/admin#x", "//host/admin"}

// unambiguous are paths that servers read in different ways, all of which are below /pub.
var unambiguous = []string{
	"/pub/@scope%2fname", "/pub/a/../b", "/pub/a//b", "/pub/a;v=1", "/pub/a%20b", "/pub/caf%c3%a9", `/pub/a\b`,
	"/pub/%252f", "/pub/./a", "/pub/a.", "/pub/a%00", "/pub/%61?x=/../admin",
}

// A pathLog keeps the requests of servers.
type pathLog struct {
	mu  sync.Mutex
	got []string
}

// server returns a server that notes its requests, and answers with what it got.
func (l *pathLog) server(t *testing.T, name string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.got = append(l.got, name+" "+r.RequestURI)
		l.mu.Unlock()
		_, _ = fmt.Fprintf(w, "%s %s%s", name, r.RequestURI, strings.Join(r.Header["X-Edited"], ""))
	}))
	t.Cleanup(s.Close)
	return s
}

// take returns what was noted since it was asked before.
func (l *pathLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := strings.Join(l.got, ", ")
	l.got = nil
	return got
}

// askRaw sends a request for a target as it is, and returns the status and the body of the answer.
func askRaw(t *testing.T, address, target string) (code int, content string) {
	t.Helper()
	nc, br := dial(t, address)
	defer func() { _ = nc.Close() }()
	if _, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: gw\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	a, _ := readAnswer(t, br, false)
	return a.StatusCode, string(a.Content)
}

// serviceObjects are two Services with a server each.
func serviceObjects(pub, admin *httptest.Server) (text string) {
	for name, server := range map[string]*httptest.Server{"pub": pub, "admin": admin} {
		host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
		text += fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: %[3]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: shop, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[3]s, protocol: TCP}]
endpoints: [{addresses: ['%[2]s'], conditions: {ready: true}}]
---
`, name, host, port)
	}
	return text
}

// httpRoute is a Gateway, and a route with the rules 'pub' and 'admin'. The latter is given.
func httpRoute(admin string) string {
	return `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: admission-gateway.io/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec:
  gatewayClassName: ours
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  rules:
  - {name: pub, matches: [{path: {value: /pub}}], backendRefs: [{name: pub, port: 80}]}
` + admin
}

// fewOf is a limit that lets one request pass for the rule 'admin' of the route.
const fewOf = `---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: few}
spec:
  requests: 1
  periodSeconds: 86400
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop, name: r, sectionName: admin}]
`

// TestAmbiguousPaths: a path that some server reads as one for which something else was decided reaches no server,
// whatever decides: another route or none, a rule, a limit or a filter, of the configuration, of Gateway API or of an
// Ingress.
func TestAmbiguousPaths(t *testing.T) {
	log := &pathLog{}
	pub, admin := log.server(t, "pub"), log.server(t, "admin")
	upstreams := fmt.Sprintf("upstreams:\n- {name: pub, endpoints: ['%s'], dialect: Plain}\n- {name: admin, endpoints: ['%s'], dialect: Plain}\nroutes:\n- {name: pub, pathPrefix: /pub, upstream: pub}\n", pub.URL, admin.URL)
	const ingressClass = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: ours}\nspec: {controller: admission-gateway.io/gateway}\n"
	const adminMatch = "  - {name: admin, matches: [{path: {value: /admin}}]"
	ingress := func(name, path, service string) string {
		return fmt.Sprintf("---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: shop}\nspec:\n  ingressClassName: ours\n"+
			"  rules: [{http: {paths: [{path: %s, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}}]\n", name, path, service)
	}
	for name, c := range map[string]struct {
		configuration, files string
		control              string // how /admin is answered, twice
	}{
		"configuration, another upstream": {upstreams + "- {pathPrefix: /admin, upstream: admin}\n", "",
			"200 admin /admin, 200 admin /admin"},
		"configuration, no other route": {upstreams, "", "404, 404"},
		"configuration, what is closed": {upstreams + "- {pathPrefix: /admin, upstream: pub, undescribed: Deny}\n",
			"", "404, 404"},
		"configuration, a prefix": {upstreams + "- {pathPrefix: /admin, upstream: pub, stripPrefix: true}\n",
			"", "200 pub /, 200 pub /"},
		"configuration, a limit": {
			upstreams + "- {name: admin, pathPrefix: /admin, upstream: pub}\n",
			"apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\nspec: {requests: 1, periodSeconds: 86400, route: admin}\n",
			"200 pub /admin, 429",
		},
		"HTTPRoute, another Service": {"", httpRoute(adminMatch + ", backendRefs: [{name: admin, port: 80}]}\n"),
			"200 admin /admin, 200 admin /admin"},
		"HTTPRoute, no other rule": {"", httpRoute(""), "404, 404"},
		"HTTPRoute, a limit": {"", httpRoute(adminMatch+", backendRefs: [{name: pub, port: 80}]}\n") + fewOf,
			"200 pub /admin, 429"},
		"HTTPRoute, header lines": {
			"", httpRoute(adminMatch + ", backendRefs: [{name: pub, port: 80}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Edited, value: 'yes'}]}}]}\n"),
			"200 pub /adminyes, 200 pub /adminyes",
		},
		"HTTPRoute, a redirect": {"", httpRoute(adminMatch + ", filters: [{type: RequestRedirect, requestRedirect: {hostname: other.example}}]}\n"), "302, 302"},
		"HTTPRoute, a rewrite": {
			"", httpRoute(adminMatch + ", backendRefs: [{name: pub, port: 80}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}}]}\n"),
			"200 pub /x, 200 pub /x",
		},
		"HTTPRoute, a mirror": {
			"", httpRoute(adminMatch + ", backendRefs: [{name: pub, port: 80}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: admin, port: 80}}}]}\n"),
			"200 pub /admin, 200 pub /admin",
		},
		"HTTPRoute, an exact path": {
			"", httpRoute("  - {matches: [{path: {type: Exact, value: /admin}}, {path: {type: RegularExpression, value: '/admin/.*'}}], backendRefs: [{name: admin, port: 80}]}\n"),
			"200 admin /admin, 200 admin /admin",
		},
		"GRPCRoute": {
			"", httpRoute("") + "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: g, namespace: shop}\nspec:\n  parentRefs: [{name: gw}]\n" +
				"  rules: [{matches: [{method: {service: admin}}], backendRefs: [{name: admin, port: 80}]}]\n",
			"503, 503", // the server does not speak HTTP/2
		},
		"Ingress, another Service": {"", ingressClass + ingress("i", "/pub", "pub") + ingress("j", "/admin", "admin"),
			"200 admin /admin, 200 admin /admin"},
		"Ingress, no other path": {"", ingressClass + ingress("i", "/pub", "pub"), "404, 404"},
	} {
		t.Run(name, func(t *testing.T) {
			var address string
			if c.configuration != "" {
				var files []string
				if c.files != "" {
					files = append(files, c.files)
				}
				_, address = configured(t, c.configuration, files...)
			} else {
				set := policiestest.Load(t, serviceObjects(pub, admin)+c.files)
				address = serveTable(t, newTabled(t, bare(t), set.Routing(), func() *policies.Set { return set }))
			}
			var control []string
			for range 2 {
				code, content := askRaw(t, address, "/admin")
				if code != http.StatusOK {
					content = ""
				}
				control = append(control, strings.TrimSpace(fmt.Sprint(code, " ", content)))
			}
			if got := strings.Join(control, ", "); got != c.control {
				t.Errorf("/admin is answered %s, want %s", got, c.control)
			}
			awaitMirrors(t, name, log)
			for _, path := range misspelled {
				refusedAsAmbiguous(t, address, path)
			}
			for _, path := range misspelledAlone {
				if strings.Contains(name, "no other") { // no reading has a route
					if code, content := askRaw(t, address, path); code != http.StatusNotFound {
						t.Errorf("%s is answered %d %s", path, code, content)
					}
					continue
				}
				refusedAsAmbiguous(t, address, path)
			}
			if got := log.take(); got != "" {
				t.Errorf("the servers got %s", got)
			}
			for _, path := range unambiguous {
				if code, content := askRaw(t, address, path); code != http.StatusOK || content != "pub "+path {
					t.Errorf("%s is answered %d %s", path, code, content)
				}
			}
			log.take()
		})
	}
}

// refusedAsAmbiguous asks for a path that must be refused because of what servers read.
func refusedAsAmbiguous(t *testing.T, address, path string) {
	t.Helper()
	code, content := askRaw(t, address, path)
	if code != http.StatusBadRequest || !strings.Contains(content, "is refused: the path could be read as '/") {
		t.Errorf("%s is answered %d %s", path, code, content)
	}
}

// awaitMirrors waits for the copies of the two requests for /admin, and forgets what was noted.
func awaitMirrors(t *testing.T, name string, log *pathLog) {
	if name != "HTTPRoute, a mirror" {
		log.take()
		return
	}
	got := ""
	for strings.Count(got, "admin /admin") < 2 {
		got += " " + log.take()
		if t.Context().Err() != nil {
			t.Fatalf("the servers got %s", got)
		}
	}
}

// TestAmbiguousElsewhere: where all paths lead to one route, each passes byte for byte.
func TestAmbiguousElsewhere(t *testing.T) {
	log := &pathLog{}
	api := log.server(t, "api")
	_, plain := configured(t, fmt.Sprintf("upstreams:\n- {name: api, endpoints: ['%s'], dialect: Plain}\n", api.URL))
	_, byHost := configured(t, fmt.Sprintf("upstreams:\n- {name: api, endpoints: ['%s'], dialect: Plain}\nroutes:\n- {host: other, upstream: api}\n- {upstream: api}\n", api.URL))
	for _, address := range []string{plain, byHost} {
		for _, path := range append(append(append([]string{"/pkg/@scope%2fname"}, misspelled...), misspelledAlone...),
			unambiguous...) {
			if code, content := askRaw(t, address, path); code != http.StatusOK || content != "api "+path {
				t.Errorf("%s is answered %d %s", path, code, content)
			}
		}
	}
}

// TestAmbiguousLimits: a path that some server reads as one that a limit counts in another way is refused, though all
// paths have one route. A path that is counted alike in all of its readings passes, and so does one of which files say
// how it is spelled.
func TestAmbiguousLimits(t *testing.T) {
	log := &pathLog{}
	api := log.server(t, "api")
	limit := func(terms string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\nspec:\n  requests: 1000\n  burst: 1000\n  periodSeconds: 86400\n" + terms
	}
	others := append([]string{}, misspelled...) // that a condition does not count as they are
	for _, path := range misspelledAlone {
		if !strings.HasPrefix(path, "/admin") {
			others = append(others, path)
		}
	}
	for name, c := range map[string]struct {
		terms           string
		refused, passes []string
	}{
		"a condition": {
			"  match: {matchConditions: [{name: admin, expression: \"request.path.startsWith('/admin')\"}]}\n",
			others, unambiguous,
		},
		"a condition about http": {
			"  match: {matchConditions: [{name: admin, expression: \"http.path.startsWith('/admin')\"}]}\n",
			others, unambiguous,
		},
		"a condition about a part": {
			"  match: {matchConditions: [{name: admin, expression: \"request.path.contains('admin')\"}]}\n",
			[]string{"/pub/%61dmin", "/pub/admin/..", "/pub/x;admin"},
			[]string{"/pub/a%20b", "/pub/x/../y", "/pub/admin/%20"},
		},
		"a key": {"  keyExpression: request.path\n", []string{"/pub/@scope%2fname", "/a/../b", "/a;b"},
			[]string{"/a%20b", "/caf%C3%A9"}},
		"a cost": {"  cost: \"request.path.startsWith('/dear') ? 10 : 1\"\n", []string{"/x/../dear", "/%64ear"},
			[]string{"/dear/a%2fb", "/x/../y"}},
		"something else": {"  match: {matchConditions: [{name: get, expression: \"request.verb == 'get'\"}]}\n", nil, append(append([]string{}, misspelled...), unambiguous...)},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := configured(t, fmt.Sprintf("upstreams:\n- {name: api, endpoints: ['%s'], dialect: Plain}\n",
				api.URL), limit(c.terms))
			for _, path := range c.refused {
				code, content := askRaw(t, address, path)
				if code != http.StatusBadRequest ||
					!strings.Contains(content, "which the rate limit 'few' counts in another way") {
					t.Errorf("%s is answered %d %s", path, code, content)
				}
			}
			if got := log.take(); got != "" {
				t.Errorf("the server got %s", got)
			}
			for _, path := range c.passes {
				if code, content := askRaw(t, address, path); code != http.StatusOK || content != "api "+path {
					t.Errorf("%s is answered %d %s", path, code, content)
				}
			}
			log.take()
		})
	}
}
