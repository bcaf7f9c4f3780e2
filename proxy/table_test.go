package proxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/policies"
)

// echoed is what a backend of these tests got.
type echoed struct {
	Backend, Method, Host, Path, Query string
	Headers                            map[string][]string
}

// echo is a backend that answers with what it got.
func echo(t testing.TB, name string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Backend", name)
		_ = json.NewEncoder(w).Encode(echoed{name, r.Method, r.Host, r.URL.EscapedPath(), r.URL.RawQuery, r.Header})
	}))
	t.Cleanup(s.Close)
	return s
}

// services are three backends, v1, v2 and v3, of a table, and after them one without servers and one that cannot be
// followed.
func services(t testing.TB) []routing.Backend {
	t.Helper()
	var all []routing.Backend
	for _, name := range []string{"v1", "v2", "v3"} {
		all = append(all, routing.Backend{Name: "infra/" + name + ":8080",
			Servers: []string{echo(t, name).Listener.Addr().String()}})
	}
	return append(all, routing.Backend{Name: "infra/empty:8080"},
		routing.Backend{Name: "infra/none:8080", Fault: "there is no Service 'infra/none'"})
}

const (
	noServers = 3 // the index of the backend without servers
	noService = 4
)

// bare is a configuration without upstreams and routes.
func bare(t testing.TB) *config.Configuration {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: "http://127.0.0.1:1", Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams, c.Routes = nil, nil
	return c
}

// ruleOf is a rule that a table's first listener takes, for any host.
func ruleOf(name string, matches []routing.Match, backend int, filters ...routing.Filter) routing.Route {
	r := routing.Route{
		Kind: "HTTPRoute", Namespace: "infra", Name: name, Rule: "0", Attachments: []routing.Attachment{{}},
		Matches: matches, Filters: filters,
	}
	if backend >= 0 {
		r.Backends = []routing.WeightedBackend{{Backend: backend, Weight: 1}}
	}
	return r
}

func prefix(path string) []routing.Match {
	return []routing.Match{{Path: routing.PathMatch{Value: path}}}
}

// tableOf is a table with one listener.
func tableOf(backends []routing.Backend, all ...routing.Route) *routing.Table {
	return &routing.Table{Listeners: []routing.Listener{{Gateway: "infra/gateway", Section: "http", Port: 80}},
		Routes: all, Backends: backends}
}

// tabled serves a table without a configuration of routes, and returns its address.
func tabled(t testing.TB, table *routing.Table) (*Gateway, string) {
	t.Helper()
	set := noPolicies()
	g := newTabled(t, bare(t), table, func() *policies.Set { return set })
	return g, serveTable(t, g)
}

// serveTable serves the first listener of a table, which has the port 80, on a free port of loopback until the test
// ends.
func serveTable(t testing.TB, g *Gateway) string {
	t.Helper()
	return serveBy(t, g, nil, func(ln net.Listener) error {
		return g.Attach(net.JoinHostPort("", strconv.Itoa(int(g.routes.listeners[0].Port))), ln)()
	})
}

// A tableAnswer has the answer and, if that is of a backend of these tests, what the backend got.
type tableAnswer struct {
	*http.Response
	echoed
}

// askTable makes a request, and follows no redirect. Headers are names and values.
func askTable(t testing.TB, address, method, host, target string, headers ...string) tableAnswer {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+address+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	a := tableAnswer{}
	if a.Response, err = http.DefaultTransport.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if a.Header.Get("X-Backend") != "" {
		if err := json.NewDecoder(a.Body).Decode(&a.echoed); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// TestTableMatches plays the tests of Gateway API about matches: which backend gets a request, or 404.
func TestTableMatches(t *testing.T) {
	header := func(values ...string) (all []routing.ValueMatch) {
		for i := 0; i < len(values); i += 2 {
			all = append(all, routing.ValueMatch{Name: values[i], Value: values[i+1]})
		}
		return all
	}
	at := func(path string, m routing.Match) routing.Match {
		m.Path.Value = path
		return m
	}
	backends := services(t)
	for name, tt := range map[string]struct {
		routes []routing.Route
		asked  map[string]string // request → backend; "" is 404
	}{
		"matching": {
			[]routing.Route{
				ruleOf("matching", []routing.Match{{}, {Headers: header("version", "one")}}, 0),
				ruleOf("matching", []routing.Match{at("/v2", routing.Match{}), {Headers: header("version", "two")}}, 1),
			},
			map[string]string{
				"GET /": "v1", "GET /example": "v1", "GET / Version=one": "v1", "GET /v2": "v2",
				"GET /v2/example": "v2", "GET / Version=two": "v2", "GET /v2/": "v2",
				"GET /v2example": "v1", "GET /foo/v2/example": "v1",
			},
		},
		"methods": {
			[]routing.Route{
				ruleOf("methods", []routing.Match{{Method: "POST"}}, 0),
				ruleOf("methods", []routing.Match{{Method: "GET"}}, 1),
				ruleOf("methods", []routing.Match{at("/path1", routing.Match{Method: "GET"})}, 0),
				ruleOf("methods", []routing.Match{{Method: "PUT", Headers: header("version", "one")}}, 1),
				ruleOf("methods", []routing.Match{at("/path5", routing.Match{})}, 0),
				ruleOf("methods", []routing.Match{{Method: "PATCH", Headers: header("version", "four")}}, 1),
			},
			map[string]string{
				"POST /": "v1", "GET /": "v2", "HEAD /": "", "GET /path1": "v1", "PUT / version=one": "v2", "PUT /": "",
				"PATCH /path5": "v1", "PATCH / version=four": "v2",
			},
		},
		"parameters": {
			[]routing.Route{
				ruleOf("parameters", []routing.Match{{Query: header("animal", "whale")}}, 0),
				ruleOf("parameters", []routing.Match{{Query: header("animal", "dolphin")}}, 1),
				ruleOf("parameters", []routing.Match{{Query: header("animal", "dolphin", "color", "blue")},
					{Query: header("ANIMAL", "Whale")}}, 2),
			},
			map[string]string{
				"GET /?animal=whale": "v1", "GET /?animal=dolphin": "v2", "GET /?animal=dolphin&color=blue": "v3",
				"GET /?ANIMAL=Whale":                       "v3",
				"GET /?animal=whale&otherparam=irrelevant": "v1", "GET /?color=blue": "", "GET /?animal=dog": "",
				"GET /?animal=whaledolphin": "", "GET /": "",
			},
		},
		"exact paths": {
			[]routing.Route{
				ruleOf("exact", []routing.Match{{Path: routing.PathMatch{Kind: routing.PathExact, Value: "/one"}}}, 0),
				ruleOf("exact", []routing.Match{{Path: routing.PathMatch{Kind: routing.PathExact, Value: "/two"}}}, 1),
			},
			map[string]string{"GET /one": "v1", "GET /two": "v2", "GET /": "", "GET /one/example": "", "GET /two/": "",
				"GET /Two": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := tabled(t, tableOf(backends, tt.routes...))
			for line, want := range tt.asked {
				words := strings.Fields(line)
				var headers []string
				if len(words) > 2 {
					name, value, _ := strings.Cut(words[2], "=")
					headers = []string{name, value}
				}
				a := askTable(t, address, words[0], "", words[1], headers...)
				if a.Backend != want || want == "" && a.StatusCode != http.StatusNotFound {
					t.Errorf("%s is answered %d by %q, want %q", line, a.StatusCode, a.Backend, want)
				}
			}
		})
	}
}

// TestTableHosts: hosts are those of attachments, and a listener's routes are its own.
func TestTableHosts(t *testing.T) {
	attached := func(r routing.Route, all ...routing.Attachment) routing.Route {
		r.Attachments = all
		return r
	}
	table := tableOf(services(t),
		attached(ruleOf("s1", prefix("/s1"), 0), routing.Attachment{Host: "very.specific.com"}),
		attached(ruleOf("s2", prefix("/s2"), 1), routing.Attachment{Host: "foo.wildcard.io"},
			routing.Attachment{Host: "*.bar.wildcard.io"}),
		attached(ruleOf("s4", nil, 2), routing.Attachment{Host: "*.anotherwildcard.io"},
			routing.Attachment{Listener: 1}),
	)
	table.Listeners = append(table.Listeners, routing.Listener{Gateway: "infra/gateway", Section: "other", Port: 8080})
	g, address := tabled(t, table)
	for _, tt := range []struct {
		host, path, backend string
	}{
		{"very.specific.com", "/s1", "v1"}, {"very.specific.com:1234", "/s1", "v1"}, {"VERY.specific.com", "/s1", "v1"},
		{"non.matching.com", "/s1", ""},
		{"foo.wildcard.io", "/s2", "v2"}, {"a.bar.wildcard.io", "/s2", "v2"}, {"bar.wildcard.io", "/s2", ""},
		{"foo.wildcard.io", "/s1", ""},
		{"x.y.anotherwildcard.io", "/s9", "v3"}, {"anotherwildcard.io", "/s9", ""},
	} {
		if a := askTable(t, address, "GET", tt.host, tt.path); a.Backend != tt.backend || tt.backend == "" &&
			a.StatusCode != 404 {
			t.Errorf("%s%s is answered %d by %q, want %q", tt.host, tt.path, a.StatusCode, a.Backend, tt.backend)
		}
	}
	if c := g.routes.find(2, bareHead("GET", "any.example", "/")); c == nil || c.routes[0].place.Listener != "other" {
		t.Errorf("the other listener has the route %+v", c)
	}
	if c := g.routes.find(ownListener, bareHead("GET", "very.specific.com", "/s1")); c != nil {
		t.Errorf("the listeners of the configuration have a route of a table: %+v", c.routes[0].place)
	}
}

// TestTableWithConfiguration: routes of the configuration are its own listeners', and those of a table may name its
// upstreams.
func TestTableWithConfiguration(t *testing.T) {
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: "http://" + backend.Addr().String() + "/base", Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	table := tableOf([]routing.Backend{{Name: "it", Upstream: c.Upstreams[0].Name},
		{Name: "other", Upstream: "nothing"}}, ruleOf("own", prefix("/a"), 0), ruleOf("no", prefix("/b"), 1))
	set := noPolicies()
	g := newTabled(t, c, table, func() *policies.Set { return set })
	address := serveGateway(t, g, nil)
	if a := askTable(t, address, "GET", "", "/x"); a.StatusCode != 200 ||
		!strings.HasPrefix(backend.Take(), "GET /base/x ") {
		t.Errorf("the route of the configuration is answered %d", a.StatusCode)
	}
	if f := g.Forecast("GET /x"); f.Place.Upstream != c.Upstreams[0].Name || f.Place.Route != "" {
		t.Errorf("the forecast is %+v", f.Place)
	}
	one := g.routes.find(1, bareHead("GET", "", "/a/b")).routes[0]
	if one.backend != g.routes.upstreams[c.Upstreams[0].Name] || one.rules == nil || one.rules.To != "/base" {
		t.Errorf("the rule leads to %s by %+v", one.backend.name, one.rules)
	}
	if no := g.routes.find(1, bareHead("GET", "", "/b")).routes[0]; no.obstacle == nil {
		t.Error("a rule leads to an upstream that there is not")
	}
}

// TestTableObstacles: what cannot be followed is 500, what has no server 503, each for its share.
func TestTableObstacles(t *testing.T) {
	weighted := func(r routing.Route, weights ...int32) routing.Route {
		r.Backends = nil
		for i := 0; i < len(weights); i += 2 {
			r.Backends = append(r.Backends, routing.WeightedBackend{Backend: int(weights[i]), Weight: weights[i+1]})
		}
		return r
	}
	g, address := tabled(t, tableOf(services(t),
		ruleOf("none", prefix("/none"), -1), ruleOf("empty", prefix("/empty"), noServers),
		ruleOf("fault", prefix("/fault"), noService),
		weighted(ruleOf("zero", prefix("/zero"), 0), 0, 0, 1, 0),
		weighted(ruleOf("half", prefix("/half"), 0), 0, 1, noService, 1),
		weighted(ruleOf("third", prefix("/third"), 0), 0, 2, noServers, 1, 1, 0),
		ruleOf("unknown", prefix("/unknown"), 0, routing.Filter{Unknown: "the filter 'ExtensionRef' is not known"}),
		ruleOf("hop", prefix("/hop"), 0,
			routing.Filter{Request: &routing.HeaderEdits{Set: []routing.Header{{Name: "Connection", Value: "close"}}}}),
		ruleOf("line", prefix("/line"), 0,
			routing.Filter{Answer: &routing.HeaderEdits{Add: []routing.Header{{Name: "X-A", Value: "a\r\nX-B: b"}}}}),
		ruleOf("two", append(prefix("/two"), prefix("/three")...), 0,
			routing.Filter{Rewrite: &routing.Rewrite{Path: &routing.PathEdit{IsPrefix: true, Value: "/"}}}),
		ruleOf("unknown redirect", prefix("/away"), -1, routing.Filter{Redirect: &routing.Redirect{Host: "a.example"}},
			routing.Filter{Unknown: "not known"}),
	))
	for path, want := range map[string]int{
		"/none": 500, "/empty": 503, "/fault": 500, "/zero": 500, "/unknown": 500, "/hop": 500, "/line": 500,
		"/two": 500, "/away": 500, "/nothing": 404,
	} {
		if a := askTable(t, address, "GET", "", path); a.StatusCode != want ||
			a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s is answered %d with %s, want %d", path, a.StatusCode, a.Header.Get("Content-Type"), want)
		}
	}
	for path, want := range map[string]map[int]int{"/half": {200: 20, 500: 20}, "/third": {200: 40, 503: 20}} {
		got := map[int]int{}
		for range want[200] + want[500] + want[503] {
			got[askTable(t, address, "GET", "", path).StatusCode]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is answered %v, want %v", path, got, want)
		}
	}
	if f := g.Forecast("GET /fault"); strings.Join(f.Stages, " ") != "identify obstacle" {
		t.Errorf("the stages are %v", f.Stages)
	}
}

// TestShares: of as many requests as the weights come to, each backend gets exactly its share, and no run of one is
// long.
func TestShares(t *testing.T) {
	for _, weights := range [][]int32{{1, 1}, {70, 30}, {1, 999}, {3, 5, 7}, {1_000_000, 1}, {4, 4, 4, 4}, {1},
		{600, 300, 100}} {
		s := newShares(weights)
		sum := int32(0)
		for _, w := range weights {
			sum += w
		}
		counts := make([]int32, len(weights))
		var mu sync.Mutex
		var all sync.WaitGroup
		for worker := range int32(4) {
			all.Go(func() {
				mine := make([]int32, len(weights))
				for n := worker; n < sum; n += 4 {
					mine[s.next()]++
				}
				mu.Lock()
				defer mu.Unlock()
				for i := range mine {
					counts[i] += mine[i]
				}
			})
		}
		all.Wait()
		if fmt.Sprint(counts) != fmt.Sprint(weights) {
			t.Errorf("%v are shared as %v", weights, counts)
		}
	}
	s, longest, run, last := newShares([]int32{70, 30}), 0, 0, -1
	for range 1000 {
		if one := s.next(); one == last {
			run++
		} else {
			run, last = 1, one
		}
		longest = max(longest, run)
	}
	if longest > 4 {
		t.Errorf("one of 70 and 30 gets %d in a row", longest)
	}
}

// TestTableRedirects plays the tests of Gateway API about redirects.
func TestTableRedirects(t *testing.T) {
	path := func(value string) *routing.PathEdit { return &routing.PathEdit{Value: value} }
	ofPrefix := func(value string) *routing.PathEdit { return &routing.PathEdit{Value: value, IsPrefix: true} }
	for _, tt := range []struct {
		port     int32
		redirect routing.Redirect
		host     string
		target   string
		code     int
		location string
	}{
		{80, routing.Redirect{Host: "example.org"}, "gw", "/p/x?a=b", 302, "http://example.org/p/x?a=b"},
		{80, routing.Redirect{Host: "example.org", Port: 80}, "gw", "/p", 302, "http://example.org/p"},
		{80, routing.Redirect{Host: "example.org", Port: 8080}, "gw", "/p", 302, "http://example.org:8080/p"},
		{80, routing.Redirect{Scheme: "https", Host: "example.org"}, "gw", "/p", 302, "https://example.org/p"},
		{80, routing.Redirect{Scheme: "https", Host: "example.org", Port: 443}, "gw", "/p", 302,
			"https://example.org/p"},
		{80, routing.Redirect{Scheme: "https", Host: "example.org", Port: 8443}, "gw", "/p", 302,
			"https://example.org:8443/p"},
		{8080, routing.Redirect{Host: "example.org"}, "gw", "/p", 302, "http://example.org:8080/p"},
		{8080, routing.Redirect{Host: "example.org", Port: 80}, "gw", "/p", 302, "http://example.org/p"},
		{8080, routing.Redirect{Scheme: "https", Host: "example.org"}, "gw", "/p", 302, "https://example.org/p"},
		{80, routing.Redirect{Scheme: "http", Port: 443, Code: 307}, "a.example:8000", "/p", 307,
			"http://a.example:443/p"},
		{80, routing.Redirect{Port: 8083, Code: 301}, "a.example", "/p", 301, "http://a.example:8083/p"},
		{80, routing.Redirect{Scheme: "https", Code: 308}, "[::1]:80", "/p", 308, "https://[::1]/p"},
		{80, routing.Redirect{Code: 303, Path: path("/whole")}, "a.example", "/p/x?q=1", 303,
			"http://a.example/whole?q=1"},
		{80, routing.Redirect{Path: ofPrefix("/new")}, "a.example", "/p/lemon", 302, "http://a.example/new/lemon"},
		{80, routing.Redirect{Path: ofPrefix("/new/")}, "a.example", "/p/", 302, "http://a.example/new/"},
		{80, routing.Redirect{Path: ofPrefix("/new")}, "a.example", "/p", 302, "http://a.example/new"},
		{80, routing.Redirect{Path: ofPrefix("/")}, "a.example", "/p", 302, "http://a.example/"},
		{80, routing.Redirect{Path: ofPrefix("")}, "a.example", "/p?x", 302, "http://a.example/?x"},
		{80, routing.Redirect{Path: ofPrefix("/new")}, "a.example", "/p/../x", 400, ""},
	} {
		table := tableOf(nil, ruleOf("redirect", prefix("/p"), -1, routing.Filter{Redirect: &tt.redirect},
			routing.Filter{Answer: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-A", Value: "b"}}}}))
		table.Listeners[0].Port = tt.port
		_, address := tabled(t, table)
		a := askTable(t, address, "GET", tt.host, tt.target)
		if a.StatusCode != tt.code || a.Header.Get("Location") != tt.location {
			t.Errorf("%+v of %s%s is answered %d %s, want %d %s", tt.redirect, tt.host, tt.target, a.StatusCode,
				a.Header.Get("Location"), tt.code, tt.location)
		}
		if tt.code < 400 && a.Header.Get("X-A") != "b" {
			t.Errorf("%+v: the answer is not edited: %v", tt.redirect, a.Header)
		}
	}
}

// TestTableRewrites plays the tests of Gateway API about rewrites, and about header lines.
func TestTableRewrites(t *testing.T) {
	edits := routing.Filter{Request: &routing.HeaderEdits{
		Set: []routing.Header{{Name: "X-Header-Set", Value: "set-overwrites-values"}},
		Add: []routing.Header{{Name: "X-Header-Add", Value: "header-val-1"},
			{Name: "x-header-add-append", Value: "header-val-2"}},
		Remove: []string{"X-Header-Remove"},
	}}
	whole := func(host, path string) routing.Filter {
		return routing.Filter{Rewrite: &routing.Rewrite{Host: host, Path: &routing.PathEdit{Value: path}}}
	}
	ofPrefix := func(path string) routing.Filter {
		return routing.Filter{Rewrite: &routing.Rewrite{Path: &routing.PathEdit{IsPrefix: true, Value: path}}}
	}
	own := ruleOf("own", prefix("/own"), 0, edits)
	own.Backends[0].Filters = []routing.Filter{
		{Request: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-Header-Set", Value: "of the backend"}},
			Remove: []string{"X-Header-Add"}}},
		{Answer: &routing.HeaderEdits{Set: []routing.Header{{Name: "Content-Type", Value: "text/x"}},
			Remove: []string{"x-nothing"}}},
	}
	_, address := tabled(t, tableOf(services(t),
		ruleOf("prefix", prefix("/prefix/one"), 0, ofPrefix("/one")),
		ruleOf("strip", prefix("/strip-prefix"), 0, ofPrefix("/")),
		ruleOf("full", prefix("/full/one"), 0, whole("", "/one")),
		ruleOf("edits", prefix("/full/edits"), 0, whole("test.example.org", "/test"), edits),
		ruleOf("host", prefix("/host"), 1, routing.Filter{Rewrite: &routing.Rewrite{Host: "one.example.org"}}),
		ruleOf("forwarded", prefix("/forwarded"), 0, routing.Filter{Request: &routing.HeaderEdits{
			Set:    []routing.Header{{Name: "X-Forwarded-Proto", Value: "https"}},
			Remove: []string{"X-Forwarded-For", "Via"},
		}}), own,
	))
	for _, tt := range []struct {
		target, host string
		want         echoed
		headers      map[string]string
		absent       []string
	}{
		{target: "/prefix/one/two?x=1", want: echoed{Path: "/one/two", Query: "x=1"}},
		{target: "/strip-prefix/three", want: echoed{Path: "/three"}},
		{target: "/strip-prefix", want: echoed{Path: "/"}},
		{target: "/strip-prefix/", want: echoed{Path: "/"}},
		{target: "/full/one/two?x=1", want: echoed{Path: "/one", Query: "x=1"}},
		{
			target: "/full/edits/x", host: "rewrite.example", want: echoed{Path: "/test", Host: "test.example.org"},
			absent: []string{"X-Header-Remove"},
			headers: map[string]string{
				"X-Header-Set": "set-overwrites-values", "X-Header-Add": "header-val-1",
				"X-Header-Add-Append": "append-val-1,header-val-2",
				"X-Forwarded-Host":    "rewrite.example",
			},
		},
		{target: "/host/x", host: "rewrite.example", want: echoed{Path: "/host/x", Host: "one.example.org"}},
		{target: "/own", want: echoed{Path: "/own"}, headers: map[string]string{"X-Header-Set": "of the backend"},
			absent: []string{"X-Header-Add", "X-Header-Remove"}},
		{target: "/forwarded", want: echoed{Path: "/forwarded"},
			headers: map[string]string{"X-Forwarded-Proto": "https"}, absent: []string{"X-Forwarded-For", "Via"}},
	} {
		a := askTable(t, address, "GET", tt.host, tt.target, "X-Header-Remove", "remove-val", "X-Header-Add-Append",
			"append-val-1", "X-Header-Set", "set-val")
		if a.Path != tt.want.Path || a.Query != tt.want.Query || tt.want.Host != "" && a.Host != tt.want.Host {
			t.Errorf("%s: the backend got %s %s?%s", tt.target, a.Host, a.Path, a.Query)
		}
		for name, want := range tt.headers {
			if got := strings.Join(a.Headers[name], ","); got != want {
				t.Errorf("%s: the backend got %s: %s, want %s", tt.target, name, got, want)
			}
		}
		for _, name := range tt.absent {
			if got := a.Headers[name]; got != nil {
				t.Errorf("%s: the backend got %s: %s", tt.target, name, got)
			}
		}
		if tt.target == "/own" && a.Response.Header.Get("Content-Type") != "text/x" {
			t.Errorf("the answer of the backend is not edited: %v", a.Response.Header)
		}
	}
}

// TestTableReplacedUnderLoad: while one route of many is changed again and again, no request fails, and backends with
// the same servers are kept.
func TestTableReplacedUnderLoad(t *testing.T) {
	const many, times, workers = 2000, 8, 8
	backends := services(t)
	set := noPolicies()
	of := func(version int) *routing.Table {
		all := make([]routing.Route, many)
		for i := range all {
			all[i] = ruleOf(fmt.Sprint("r", i), prefix(fmt.Sprintf("/r%d", i)), i%3)
			all[i].Attachments[0].Host = fmt.Sprintf("h%d.example.com", i%100)
		}
		all[7] = ruleOf("changed", prefix(fmt.Sprintf("/version/%d", version)), 0)
		own := append([]routing.Backend(nil), backends...)
		return tableOf(own, all...)
	}
	c := bare(t)
	g := newTabled(t, c, of(0), func() *policies.Set { return set })
	address := serveTable(t, g)
	var done atomic.Bool
	var asked, failed atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := worker; !done.Load(); n++ {
				i := n % 100
				if i == 7 {
					continue
				}
				r, _ := http.NewRequest("GET", fmt.Sprintf("http://%s/r%d/x", address, i), nil)
				r.Host = fmt.Sprintf("h%d.example.com", i)
				a, err := client.Do(r)
				if asked.Add(1); err != nil || a.StatusCode != 200 ||
					a.Header.Get("X-Backend") != fmt.Sprintf("v%d", i%3+1) {
					failed.Add(1)
					t.Errorf("%s%s: %v %v", r.Host, r.URL.Path, a, err)
				}
				if a != nil {
					_ = a.Body.Close()
				}
			}
		})
	}
	for version := 1; version <= times; version++ {
		table := of(version)
		began := time.Now()
		next, err := g.Next(Options{Config: c, Routing: table, Policies: func() *policies.Set { return set },
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if next.routes.backends[0] != g.routes.backends[0] || len(next.routes.backends) != 3 {
			t.Error("the backends are made anew")
		}
		next.Replace(g, func() {})
		t.Logf("version %d is in force after %v", version, time.Since(began))
		g = next
		if a := askTable(t, address, "GET", "", fmt.Sprintf("/version/%d", version)); a.Backend != "v1" {
			t.Errorf("version %d is answered %d", version, a.StatusCode)
		}
	}
	done.Store(true)
	all.Wait()
	if asked.Load() == 0 || failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), asked.Load())
	}
}
