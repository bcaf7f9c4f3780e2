package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// serviceOf is a backend of a table that a handler serves.
func serviceOf(t testing.TB, name string, serve http.HandlerFunc) routing.Backend {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return routing.Backend{Name: "infra/" + name + ":8080", Servers: []string{s.Listener.Addr().String()}}
}

// TestTableRetries plays the tests of Gateway API about retries, and what must not be sent again.
func TestTableRetries(t *testing.T) {
	var mu sync.Mutex
	attempts := map[string]int{}
	backend := serviceOf(t, "flaky", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		mu.Lock()
		attempts[q.Get("id")]++
		n := attempts[q.Get("id")]
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		after, _ := strconv.Atoi(q.Get("after"))
		switch code, _ := strconv.Atoi(q.Get("code")); {
		case n > after:
			_, _ = w.Write(body)
		case code == 0:
			panic(http.ErrAbortHandler) // without an answer
		default:
			w.WriteHeader(code)
		}
	})
	of := func(path string, attempts int, codes ...int) routing.Route {
		r := ruleOf(path, prefix(path), 0)
		r.Retry = &routing.Retry{Codes: codes, Attempts: attempts, Backoff: time.Millisecond}
		return r
	}
	_, address := tabled(t, tableOf([]routing.Backend{backend}, of("/three", 3, 500), of("/two", 2, 500, 502, 503, 504),
		ruleOf("/none", prefix("/none"), 0)))
	for i, tt := range []struct {
		method, path, body string
		code, after        int
		want, sent         int
	}{
		{"GET", "/three", "", 500, 2, 200, 3},
		{"GET", "/three", "", 500, 4, 500, 4},
		{"GET", "/three", "", 503, 2, 503, 1},
		{"GET", "/two", "", 502, 1, 200, 2},
		{"GET", "/two", "", 504, 3, 504, 3},
		{"POST", "/three", "a body", 500, 1, 200, 2}, // by the word of the route's author
		{"GET", "/none", "", 500, 1, 500, 1},
		{"PUT", "/three", "a body", 0, 2, 200, 3}, // the connection ends
		{"POST", "/three", "a body", 0, 2, 502, 1},
		{"DELETE", "/none", "", 0, 1, 502, 1},
	} {
		id := fmt.Sprint(i)
		r, err := http.NewRequest(tt.method, fmt.Sprintf("http://%s%s?id=%s&code=%d&after=%d", address, tt.path, id,
			tt.code, tt.after), strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != tt.want || tt.want == 200 && string(body) != tt.body {
			t.Errorf("%+v is answered %d %s", tt, a.StatusCode, body)
		}
		mu.Lock()
		if attempts[id] != tt.sent {
			t.Errorf("%+v is sent %d times", tt, attempts[id])
		}
		mu.Unlock()
	}
}

// TestTableTimeouts plays the tests of Gateway API about timeouts: a backend that is silent, and one whose answer does
// not end.
func TestTableTimeouts(t *testing.T) {
	released := make(chan struct{})
	backend := serviceOf(t, "slow", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("waits") {
		case "before":
			<-released
		case "within":
			_, _ = io.WriteString(w, "a part, ")
			w.(http.Flusher).Flush()
			<-released
		}
		_, _ = io.WriteString(w, "all")
	})
	t.Cleanup(func() { close(released) })
	of := func(path string, whole, attempt time.Duration) routing.Route {
		r := ruleOf(path, prefix(path), 0)
		r.Timeout, r.AttemptTimeout = whole, attempt
		return r
	}
	const short = 100 * time.Millisecond
	_, address := tabled(t, tableOf([]routing.Backend{backend},
		of("/whole", short, 0), of("/attempt", time.Minute, short), of("/long", time.Minute, time.Minute),
		of("/unbounded", routing.Unbounded, routing.Unbounded)))
	for target, want := range map[string]int{
		"/whole": 200, "/whole?waits=before": 504, "/attempt": 200, "/attempt?waits=before": 504, "/long": 200,
		"/unbounded": 200,
	} {
		if a := askTable(t, address, "GET", "", target); a.StatusCode != want {
			t.Errorf("%s is answered %d, want %d", target, a.StatusCode, want)
		}
	}
	for _, target := range []string{"/whole?waits=within", "/attempt?waits=within"} {
		a, err := http.Get("http://" + address + target)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(a.Body); err == nil || string(body) != "a part, " {
			t.Errorf("%s is answered %q, which ends %v", target, body, err)
		}
		_ = a.Body.Close()
	}
}

// TestTableMirrors: mirrors get copies, as many as they are to get, without what is the backend's alone. Nothing waits
// for them.
func TestTableMirrors(t *testing.T) {
	type copied struct{ line, body, added, own string }
	var mu sync.Mutex
	got := map[string][]copied{}
	note := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got[name] = append(got[name], copied{r.Method + " " + r.Host + r.URL.String(), string(body),
				r.Header.Get("X-Added"), r.Header.Get("X-Own")})
		}
	}
	silent := make(chan struct{})
	backends := []routing.Backend{
		serviceOf(t, "main", note("main")), serviceOf(t, "one", note("one")), serviceOf(t, "two", note("two")),
		serviceOf(t, "silent", func(http.ResponseWriter, *http.Request) { <-silent }), {Name: "infra/empty:8080"},
	}
	t.Cleanup(func() { close(silent) }) // before its server waits for what it serves
	to := func(backend int, share ...int32) routing.Filter {
		m := &routing.Mirror{Backend: backend}
		if share != nil {
			m.Numerator, m.Denominator = share[0], share[1]
		}
		return routing.Filter{Mirror: m}
	}
	edits := routing.Filter{Request: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-Added", Value: "a"}}}}
	both := ruleOf("both", prefix("/both"), 0, edits, to(1), to(2, 1, 1))
	both.Backends[0].Filters = []routing.Filter{
		{Request: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-Own", Value: "o"}}}}}
	g, address := tabled(t, tableOf(backends, both,
		ruleOf("part", prefix("/part"), 0, to(1, 25, 50), to(2, 0, 100)),
		ruleOf("fail", prefix("/fail"), 0, to(3), to(4)),
		ruleOf("path", prefix("/path"), 0, to(1),
			routing.Filter{Rewrite: &routing.Rewrite{Host: "b.example",
				Path: &routing.PathEdit{IsPrefix: true, Value: "/new"}}}),
	))
	await := func(name string, n int) []copied {
		t.Helper()
		testutil.Becomes(t, true, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(got[name]) >= n
		})
		mu.Lock()
		defer mu.Unlock()
		all := got[name]
		got[name] = nil
		return all
	}
	post := func(path string, body io.Reader) int {
		t.Helper()
		r, err := http.NewRequest("POST", "http://"+address+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "a.example"
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		return a.StatusCode
	}
	if code := post("/both?q=1", strings.NewReader("a body")); code != 200 {
		t.Errorf("the answer is %d", code)
	}
	for name, own := range map[string]string{"main": "o", "one": "", "two": ""} {
		if all, want := await(name, 1), (copied{"POST a.example/both?q=1", "a body", "a", own}); len(all) != 1 ||
			all[0] != want {
			t.Errorf("%s got %+v, want %+v", name, all, want)
		}
	}
	const many = 40
	for range many {
		post("/part", nil)
	}
	await("main", many)
	if all := await("one", many/2); len(all) != many/2 {
		t.Errorf("the mirror of 25 in 50 got %d of %d requests", len(all), many)
	}
	post("/path/x", nil)
	if all := await("one", 1); all[0].line != "POST b.example/new/x" {
		t.Errorf("the mirror got %+v", all)
	}
	if code := post("/fail", strings.NewReader("x")); code != 200 {
		t.Errorf("with mirrors that fail the answer is %d", code)
	}
	// A body of unknown length that has not arrived is not copied.
	reader, writer := io.Pipe()
	go func() {
		mu.Lock()
		got["main"] = nil
		mu.Unlock()
		_, _ = io.WriteString(writer, "some")
		time.Sleep(10 * time.Millisecond)
		_ = writer.Close()
	}()
	if code := post("/both", reader); code != 200 {
		t.Errorf("the answer to a body that streams is %d", code)
	}
	if all := await("main", 1); all[0].body != "some" {
		t.Errorf("the backend got %+v", all)
	}
	if n := g.memory.InUse(); n > 1<<20 {
		t.Errorf("copies hold %d bytes", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got["two"]) > 1 {
		t.Errorf("a mirror that gets nothing got %+v", got["two"])
	}
}

// TestTableCORS plays the tests of Gateway API about CORS.
func TestTableCORS(t *testing.T) {
	share := func(c routing.CORS) routing.Filter { return routing.Filter{CORS: &c} }
	_, address := tabled(t, tableOf(services(t),
		ruleOf("one", prefix("/cors-1"), 0, share(routing.CORS{
			Origins: []string{"https://www.foo.com", "https://*.bar.com"}, Methods: []string{"GET", "OPTIONS"},
			Headers: []string{"x-header-1", "x-header-2"},
			Exposed: []string{"x-header-3", "x-header-4"}, HasCredentials: true, MaxAge: time.Hour,
		})),
		ruleOf("two", prefix("/cors-2"), 0,
			share(routing.CORS{Origins: []string{"https://www.foo.com"}, Methods: []string{"*"},
				MaxAge: 5 * time.Second})),
		ruleOf("all", prefix("/wildcard-origin"), 0,
			share(routing.CORS{Origins: []string{"*"}, Methods: []string{"PUT"}})),
		ruleOf("open", prefix("/open"), 0,
			share(routing.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"},
				Exposed: []string{"*"}, HasCredentials: true})),
		ruleOf("closed", prefix("/closed"), 0,
			share(routing.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"}})),
		ruleOf("wide", prefix("/wide"), 0,
			share(routing.CORS{Origins: []string{"HTTPS://*", "http://*:8080", "https://A.example:443"}})),
	))
	const origin, credentials, methods, headers, exposed, age = "Access-Control-Allow-Origin",
		"Access-Control-Allow-Credentials", "Access-Control-Allow-Methods",
		"Access-Control-Allow-Headers", "Access-Control-Expose-Headers", "Access-Control-Max-Age"
	for _, tt := range []struct {
		method, path, origin, asked, names string
		want                               map[string]string // "" is absent
	}{
		{"OPTIONS", "/cors-1", "https://www.foo.com", "GET", "x-header-1, x-header-2", map[string]string{
			origin: "https://www.foo.com", methods: "GET, OPTIONS", headers: "x-header-1, x-header-2",
			exposed: "x-header-3, x-header-4", age: "3600", credentials: "true",
		}},
		{"OPTIONS", "/cors-1", "https://xpto.www.bar.com", "GET", "",
			map[string]string{origin: "https://xpto.www.bar.com", methods: "GET, OPTIONS"}},
		{"OPTIONS", "/cors-1", "https://foobar.com", "GET", "", map[string]string{origin: "", methods: "", age: ""}},
		{"GET", "/cors-1", "https://www.foo.com", "GET", "", map[string]string{origin: "https://www.foo.com"}},
		{"GET", "/cors-1", "https://www.bar.com", "", "",
			map[string]string{origin: "https://www.bar.com", credentials: "true"}},
		{"GET", "/cors-1", "https://foobar.com", "GET", "", map[string]string{origin: ""}},
		{"OPTIONS", "/cors-2", "https://www.foo.com", "POST", "",
			map[string]string{origin: "https://www.foo.com", methods: "POST", credentials: "", headers: "", age: "5"}},
		{"OPTIONS", "/wildcard-origin", "https://foobar.com:12345", "PUT", "",
			map[string]string{origin: "*", methods: "PUT", credentials: ""}},
		{"PUT", "/wildcard-origin", "https://foobar.com", "", "", map[string]string{origin: "*", credentials: ""}},
		{"OPTIONS", "/open", "https://other.foo.com", "PUT", "x-header-1, x-header-2", map[string]string{
			origin: "https://other.foo.com", methods: "PUT", headers: "x-header-1, x-header-2", credentials: "true",
			exposed: "",
		}},
		{"GET", "/open", "https://other.foo.com", "", "",
			map[string]string{origin: "https://other.foo.com", credentials: "true"}},
		{"OPTIONS", "/closed", "https://other.foo.com", "PUT", "x-header-1",
			map[string]string{origin: "*", methods: "PUT", headers: "x-header-1", credentials: ""}},
		{"GET", "/wide", "https://any.example", "", "", map[string]string{origin: "https://any.example"}},
		{"GET", "/wide", "http://any.example:8080", "", "", map[string]string{origin: "http://any.example:8080"}},
		{"GET", "/wide", "http://any.example", "", "", map[string]string{origin: ""}},
		{"GET", "/wide", "https://any.example:8443", "", "", map[string]string{origin: ""}},
	} {
		lines := []string{"Origin", tt.origin}
		if tt.asked != "" {
			lines = append(lines, "Access-Control-Request-Method", tt.asked)
		}
		if tt.names != "" {
			lines = append(lines, "Access-Control-Request-Headers", tt.names)
		}
		a := askTable(t, address, tt.method, "", tt.path, lines...)
		if want := 200; a.StatusCode != want && tt.method != "OPTIONS" || tt.method == "OPTIONS" &&
			(a.StatusCode != 204 || a.Backend != "") {
			t.Errorf("%s %s of %s is answered %d", tt.method, tt.path, tt.origin, a.StatusCode)
		}
		for name, want := range tt.want {
			if got := a.Response.Header.Get(name); got != want {
				t.Errorf("%s %s of %s is answered %s: %q, want %q", tt.method, tt.path, tt.origin, name, got, want)
			}
		}
	}
}

// TestTableProtocols: backends are spoken to as the table says, in HTTP/2 without TLS and by TLS, and WebSockets pass.
func TestTableProtocols(t *testing.T) {
	ca, other := credentialstest.NewAuthority(t, "ca"), credentialstest.NewAuthority(t, "other")
	user := ca.Client(t, "gateway", nil)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	says := func(w http.ResponseWriter, r *http.Request) {
		shown := "nobody"
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			shown = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		name := ""
		if r.TLS != nil {
			name = r.TLS.ServerName
		}
		w.Header().Set("X-Said", r.Proto+" "+name+" "+shown)
	}
	h2c := httptest.NewUnstartedServer(http.HandlerFunc(says))
	h2c.Config.Protocols = &protocols
	h2c.Start()
	t.Cleanup(h2c.Close)
	id, err := url.Parse("spiffe://cluster/ns/infra")
	if err != nil {
		t.Fatal(err)
	}
	secured := httptest.NewUnstartedServer(http.HandlerFunc(says))
	pair := ca.Server(t, []string{"abc.example.com"}, func(c *x509.Certificate) { c.URIs = []*url.URL{id} })
	secured.TLS = &tls.Config{Certificates: []tls.Certificate{pair.TLS(t)}, ClientAuth: tls.RequestClientCert}
	secured.EnableHTTP2, secured.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	secured.StartTLS()
	t.Cleanup(secured.Close)
	behind := func(name string, isHTTP2 bool, tls *routing.BackendTLS) routing.Backend {
		server := secured
		if tls == nil {
			server = h2c
		}
		return routing.Backend{Name: "infra/" + name, Servers: []string{server.Listener.Addr().String()},
			IsHTTP2: isHTTP2, TLS: tls}
	}
	cases := []struct {
		backend routing.Backend
		code    int
		said    string
	}{
		{behind("h2c", true, nil), 200, "HTTP/2.0  nobody"},
		{behind("tls", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: ca.PEM}), 200,
			"HTTP/1.1 abc.example.com nobody"},
		{behind("h2", true, &routing.BackendTLS{ServerName: "abc.example.com", CAs: ca.PEM}), 200,
			"HTTP/2.0 abc.example.com nobody"},
		{behind("user", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: ca.PEM,
			Client: &routing.Certificate{Chain: user.Cert, Key: user.Key}}), 200, "HTTP/1.1 abc.example.com gateway"},
		{behind("names", false, &routing.BackendTLS{ServerName: "sni.example.com", CAs: ca.PEM,
			Names: []string{"x.example.com", "abc.example.com"}}), 200, "HTTP/1.1 sni.example.com nobody"},
		{behind("uri", false, &routing.BackendTLS{ServerName: "sni.example.com", CAs: ca.PEM,
			Names: []string{"spiffe://cluster/ns/infra"}}), 200, "HTTP/1.1 sni.example.com nobody"},
		{behind("wrong name", false, &routing.BackendTLS{ServerName: "sni.example.com", CAs: ca.PEM}), 503, ""},
		{behind("wrong names", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: ca.PEM,
			Names: []string{"x.example.com", "spiffe://cluster/ns/other"}}), 503, ""},
		{behind("wrong authority", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: other.PEM}), 503, ""},
		{behind("wrong authority of names", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: other.PEM,
			Names: []string{"abc.example.com"}}), 503, ""},
		{behind("the system's authorities", false, &routing.BackendTLS{ServerName: "abc.example.com"}), 503, ""},
		{behind("no authority", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: []byte("none")}), 500,
			""},
		{behind("no key", false, &routing.BackendTLS{ServerName: "abc.example.com", CAs: ca.PEM,
			Client: &routing.Certificate{Chain: user.Cert}}), 500, ""},
	}
	table := tableOf(nil)
	for i, tt := range cases {
		table.Backends = append(table.Backends, tt.backend)
		table.Routes = append(table.Routes, ruleOf(tt.backend.Name, prefix(fmt.Sprintf("/%d", i)), i))
	}
	echoing := serveConns(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if r, err := http.ReadRequest(br); err != nil || r.URL.Path != "/ws" {
			return
		}
		_, _ = io.WriteString(c, agree("websocket"))
		line, _ := br.ReadString('\n')
		_, _ = io.WriteString(c, "said "+line)
	})
	table.Backends = append(table.Backends, routing.Backend{Name: "infra/ws", Servers: []string{echoing}})
	table.Routes = append(table.Routes, ruleOf("ws", prefix("/ws"), len(cases)))
	_, address := tabled(t, table)
	for i, tt := range cases {
		if a := askTable(t, address, "GET", "", fmt.Sprintf("/%d", i)); a.StatusCode != tt.code ||
			a.Header.Get("X-Said") != tt.said {
			t.Errorf("%s is answered %d %q, want %d %q", tt.backend.Name, a.StatusCode, a.Header.Get("X-Said"), tt.code,
				tt.said)
		}
	}
	c, br := dialTCP(t, address)
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, askUpgrade("GET", "/ws", "websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13"))
	a, err := http.ReadResponse(br, nil)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade is answered %v %v", a, err)
	}
	_, _ = io.WriteString(c, "hello\n")
	if line, _ := br.ReadString('\n'); line != "said hello\n" {
		t.Errorf("the backend answers %q", line)
	}
}

// TestTableGRPC: what no rule takes is UNIMPLEMENTED to a call of gRPC, and a backend that cannot be had is
// UNAVAILABLE.
func TestTableGRPC(t *testing.T) {
	set := noPolicies()
	method := func(name string, backend int) routing.Route {
		r := ruleOf(name,
			[]routing.Match{{Path: routing.PathMatch{Kind: routing.PathExact, Value: "/pkg.Echo/" + name}}}, backend)
		r.Kind = "GRPCRoute"
		return r
	}
	g := newTabled(t, bare(t), tableOf(services(t), method("Empty", noServers), method("None", noService)),
		func() *policies.Set { return set })
	address := serveTable(t, g)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	defer client.CloseIdleConnections()
	for name, code := range map[string]int{"Empty": grpcUnavailable, "None": grpcInternal, "Other": grpcUnimplemented} {
		r, err := http.NewRequest("POST", "http://"+address+"/pkg.Echo/"+name,
			strings.NewReader("\x00\x00\x00\x00\x00"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("TE", "trailers")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != 200 || a.Header.Get("Grpc-Status") != strconv.Itoa(code) {
			t.Errorf("%s is answered %d with %v, want the code %d", name, a.StatusCode, a.Header, code)
		}
	}
}

// TestTablePolicies: what files describe is found by the path that the backend gets, and mirrors get what it gets.
func TestTablePolicies(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	store := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodPost { // and not a read of the gateway's own
				mu.Lock()
				got[name] = r.URL.Path + " " + string(body) + " " + r.Header.Get("X-Edited")
				mu.Unlock()
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		}
	}
	table := tableOf([]routing.Backend{serviceOf(t, "parcels", store("parcels")),
		serviceOf(t, "mirror", store("mirror"))},
		ruleOf("shop", prefix("/shop"), 0,
			routing.Filter{Rewrite: &routing.Rewrite{Path: &routing.PathEdit{IsPrefix: true, Value: "/v1"}}},
			routing.Filter{Mirror: &routing.Mirror{Backend: 1}},
			routing.Filter{Request: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-Edited", Value: "yes"}}}},
			routing.Filter{Answer: &routing.HeaderEdits{Set: []routing.Header{{Name: "X-A", Value: "b"}}}},
			routing.Filter{CORS: &routing.CORS{Origins: []string{"*"}}}),
		ruleOf("away", prefix("/away"), -1, routing.Filter{Redirect: &routing.Redirect{Host: "a.example"}}))
	set := policiestest.LoadFiles(t, "testdata/policies/parcels.yaml")
	g := newTabled(t, bare(t), table, func() *policies.Set { return set })
	address := serveTable(t, g)
	post := func(pieces int) (int, string) {
		body := fmt.Sprintf(`{"apiVersion":"shop.example.com/v1","kind":"Parcel","metadata":{"name":"p1"},"spec":{"pieces":%d}}`, pieces)
		a, err := http.Post("http://"+address+"/shop/tenants/team-a/parcels", "application/json",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		text, _ := io.ReadAll(a.Body)
		if a.StatusCode < 300 && a.Header.Get("X-A") != "b" {
			t.Errorf("the answer is not edited: %v", a.Header)
		}
		return a.StatusCode, string(text)
	}
	if code, text := post(10); code != 422 || !strings.Contains(text, "spec.pieces") {
		t.Errorf("an invalid object is answered %d %s", code, text)
	}
	if len(got) > 0 {
		t.Errorf("what is refused reached %v", got)
	}
	if code, text := post(3); code != 201 {
		t.Errorf("a valid object is answered %d %s", code, text)
	}
	testutil.Becomes(t, true, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got["mirror"] != ""
	})
	mu.Lock()
	defer mu.Unlock()
	if main := got["parcels"]; main != got["mirror"] || !strings.HasPrefix(main, "/v1/tenants/team-a/parcels ") ||
		!strings.Contains(main, `"weight":1`) || !strings.HasSuffix(main, " yes") {
		t.Errorf("the backend got\n%s\nand the mirror\n%s", main, got["mirror"])
	}
	for line, want := range map[string]string{
		"POST /shop/tenants/team-a/parcels": "preflight identify mirror upgrade revision negotiate deadline create",
		"GET /away/x":                       "identify redirect",
		"GET /shop/other":                   "preflight identify mirror revision pass",
	} {
		f := g.Forecast(line)
		if stages := strings.Join(f.Stages, " "); stages != want || f.Place.Gateway != "infra/gateway" ||
			f.Place.Listener != "http" || f.Place.Rule != "0" {
			t.Errorf("%s: the forecast is %s by %+v (%v), want %s", line, stages, f.Place, f.Refusal, want)
		}
	}
}

// FuzzRedirect: wherever a request is sent, it is one line, an absolute URL of the host that the route or the client
// says.
func FuzzRedirect(f *testing.F) {
	f.Add("/p/x?a=b", "a.example:80", "", "/new", true)
	f.Add("/p//evil.example", "a", "b.example", "", true)
	f.Add("/p/..%2f..", "a", "", "/x", true)
	f.Add("/p?x", "[::1]:8080", "", "/whole?y", false)
	f.Fuzz(func(t *testing.T, target, host, to, path string, isPrefix bool) {
		var head message.Head
		if !strings.HasPrefix(target, "/p") || len(target) > 2 && target[2] != '/' && target[2] != '?' ||
			head.Parse([]byte("GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"), &message.Options{}) != nil ||
			string(head.Target) != target {
			t.Skip()
		}
		if strings.ContainsFunc(to+path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || to != "" &&
			strings.ContainsAny(to, "/?#@:[]\\") || path != "" && (path[0] != '/' || strings.Contains(path, "#")) {
			t.Skip() // which no object has
		}
		filters := filters{route: &route{}, listener: &routing.Listener{Port: 8080},
			redirect: &routing.Redirect{Host: to, Path: &routing.PathEdit{Value: path, IsPrefix: isPrefix}}}
		if path == "" && !isPrefix {
			t.Skip()
		}
		got, err := filters.newRedirect(prefix("/p")).appendLocation(nil, &head, "http")
		if err != nil {
			return
		}
		want := to
		if want == "" {
			want = string(head.Host)
			if i := strings.LastIndexByte(want, ':'); i >= 0 && !strings.Contains(want[i:], "]") {
				want = want[:i]
			}
		}
		if rest, found := strings.CutPrefix(string(got), "http://"+want+":8080"); !found ||
			!strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "\r\n ") {
			t.Errorf("%s of %s is sent to %s", target, host, got)
		}
	})
}

// TestTableDoesNotAllocate: to find the route of a request, to pick one of its backends and to edit its head takes no
// memory.
func TestTableDoesNotAllocate(t *testing.T) {
	set := noPolicies()
	r := ruleOf("one",
		[]routing.Match{{Path: routing.PathMatch{Value: "/a"}, Headers: []routing.ValueMatch{{Name: "x", Value: "1"}}}},
		0)
	r.Backends = append(r.Backends, routing.WeightedBackend{Backend: 1, Weight: 3})
	g := newTabled(t, bare(t), tableOf(services(t), r), func() *policies.Set { return set })
	defer g.retire()
	var head message.Head
	if err := head.Parse([]byte("GET /a/b?c HTTP/1.1\r\nHost: a.example\r\nX: 1\r\n\r\n"),
		&message.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if c := g.routes.find(1, &head); c == nil || c.pick(nil) == nil {
			t.Fatal("no route")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
