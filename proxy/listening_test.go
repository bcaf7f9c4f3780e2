package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// opened are the listeners of a Gateway, on ports of loopback, by their addresses.
type opened map[string]string

// openAll serves the addresses of a Gateway that are not served yet.
func openAll(t *testing.T, g *Gateway, at opened) {
	t.Helper()
	for _, address := range g.Addresses() {
		if at[address] != "" {
			continue
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at[address] = ln.Addr().String()
		go func() {
			if err := g.Attach(address, ln)(); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}()
	}
}

// naming is a backend that says what it got of the client, and an HSTS of its own.
func naming(t *testing.T) string {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		_, _ = fmt.Fprintf(w, "%s for %s by %s", r.URL.Path, r.Header.Get("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// says sends the bytes of one request, after what is sent before TLS, and returns the answer.
func says(t *testing.T, address, before string, over *tls.Config, request string) (*http.Response, string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
	if _, err := io.WriteString(nc, before); err != nil {
		t.Fatal(err)
	}
	if over != nil {
		over = over.Clone()
		over.InsecureSkipVerify = true
		nc = tls.Client(nc, over)
	}
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestListeners: what each listener of a configuration makes of requests.
func TestListeners(t *testing.T) {
	open, safe := newTLS(t, credentials.ServerFiles{}).Files,
		newTLS(t, credentials.ServerFiles{ClientAuth: tls.RequestClientCert}).Files
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"),
		"apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
			"listen: ':80'\n"+
			"listeners:\n"+
			"- {name: to-https, listen: ':81', redirectToHTTPS: {}}\n"+
			"- {name: to-port, listen: ':82', redirectToHTTPS: {code: 301, port: 8443}}\n"+
			"- {name: open, listen: ':443', tls: {certFile: "+open.Cert+", keyFile: "+open.Key+
			"}, hsts: {includeSubDomains: true}}\n"+
			"- {name: other, listen: ':443', hosts: [other.example, '*.other.example'], tls: {certFile: "+open.Cert+", keyFile: "+open.Key+"}, hsts: {maxAgeSeconds: 0}}\n"+
			"- {name: safe, listen: ':444', hosts: [safe.example], tls: {certFile: "+safe.Cert+", keyFile: "+safe.Key+
			", clientCAFile: "+safe.ClientCA+"}}\n"+
			"- {name: balanced, listen: ':83', proxyProtocol: {from: [127.0.0.1]}}\n"+
			"upstreams: [{name: a, endpoints: ['"+naming(t)+"'], dialect: Plain}]\n")
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	g := newTestGateway(t, c, noPolicies)
	at := opened{}
	openAll(t, g, at)
	t.Cleanup(func() { _ = g.Shutdown(t.Context()) })
	get := func(path, host string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	}
	sni := func(name string) *tls.Config { return &tls.Config{ServerName: name} }
	const year = "max-age=31536000; includeSubDomains"
	for _, c := range []struct {
		address, before string
		tls             *tls.Config
		request         string
		code            int
		transport, want string // Strict-Transport-Security; the body, or Location
	}{
		{":80", "", nil, get("/a", "any.example"), 200, "max-age=1", "/a for 127.0.0.1 by http"},
		{":80", "", nil, get("/a", "safe.example"), 421, "",
			"the host 'safe.example' is not served on this connection"},
		{":80", "", nil, "GET /a HTTP/1.1\r\n\r\n", 400, "", "Host"},
		{":81", "", nil, get("/a?b=c%20d", "shop.example:81"), 308, "", "https://shop.example/a?b=c%20d"},
		{":81", "", nil, get("/a", "safe.example"), 308, "", "https://safe.example/a"},
		{":81", "", nil, get("http://shop.example/x", "shop.example"), 308, "", "https://shop.example/x"},
		{":81", "", nil, get("/a", "[::1]:81"), 308, "", "https://[::1]/a"},
		{":81", "", nil, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", 308, "", "https://a/a"},
		{":81", "", nil, "GET /a HTTP/1.0\r\n\r\n", 400, "", "Host"},
		{":81", "", nil, get("/.well-known/acme-challenge/token", "shop.example"), 200, "max-age=1",
			"/.well-known/acme-challenge/token for 127.0.0.1 by http"},
		{":81", "", nil, get("/.well-known/acme-challenge/../../admin", "shop.example"), 400, "",
			"it could be read as one that is asked for by https alone"},
		{":81", "", nil, get("/.well-known/acme-challenge/..%2fx", "shop.example"), 400, "",
			"it could be read as one that is asked for by https alone"},
		{":81", "", nil, get("/x/../.well-known/acme-challenge/token", "shop.example"), 308, "",
			"https://shop.example/x/../.well-known/acme-challenge/token"},
		{":81", "", nil, get("/.well-known/acme-challenge", "shop.example"), 308, "",
			"https://shop.example/.well-known/acme-challenge"},
		{":82", "", nil, get("/", "shop.example:82"), 301, "", "https://shop.example:8443/"},
		{":443", "", sni("a.example"), get("/a", "a.example"), 200, year, "/a for 127.0.0.1 by https"},
		{":443", "", sni("a.example"), "GET /a HTTP/1.1\r\n\r\n", 400, year, "Host"},
		{":443", "", sni("a.example"), "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, year, "more than once"},
		{":443", "", sni("a.example"), get("/a", "b.other.example"), 421, year, "not served"},
		{":443", "", sni("b.other.example"), get("/a", "c.b.other.example:8443"), 200, "max-age=0", "/a for"},
		{":443", "", sni("b.other.example"), get("/a", "a.example"), 421, "max-age=0", "not served"},
		{":443", "", sni("safe.example"), get("/a", "safe.example"), 421, year, "not served"},
		{":443", "", sni(""), get("/a", "10.0.0.1"), 200, year, "/a for"},
		// certificates of clients are asked for elsewhere
		{":443", "", sni(""), get("/a", "other.example"), 421, year, "not served"},
		{":444", "", sni("safe.example"), get("/a", "safe.example"), 200, "max-age=1", "/a for"},
		{":444", "", sni("safe.example"), get("/a", "a.example"), 404, "",
			"no listener takes requests for the host 'a.example'"},
		{":83", "PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n", nil, get("/a", "a.example"), 200, "max-age=1",
			"/a for 192.0.2.7 by http"},
	} {
		answer, body := says(t, at[c.address], c.before, c.tls, c.request)
		got := body
		if answer.StatusCode/100 == 3 {
			if got = answer.Header.Get("Location"); got != c.want || body != "" {
				t.Errorf("%s %q: sent to %q with %q, want %s", c.address, c.request, got, body, c.want)
			}
		}
		if answer.StatusCode != c.code || strings.Join(answer.Header.Values(strictTransport), ", ") != c.transport ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s %q: answered %d, %q: %s; want %d, %q: %s", c.address, c.request, answer.StatusCode,
				answer.Header.Values(strictTransport), got, c.code, c.transport, c.want)
		}
	}
}

// TestTableNamesNobody: the authorities of a table's listener let clients in, and name no users of the configuration.
func TestTableNamesNobody(t *testing.T) {
	ours := newTLS(t, credentials.ServerFiles{ClientAuth: tls.RequestClientCert})
	api := naming(t)
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"),
		"apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
			"listen: ':443'\ntls: {certFile: "+ours.Files.Cert+", keyFile: "+ours.Files.Key+", clientCAFile: "+
			ours.Files.ClientCA+"}\n"+
			"identity: {authenticators: [{clientCertificate: {}}]}\n"+
			"upstreams: [{name: a, endpoints: ['"+api+"'], dialect: Plain}]\n")
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	pair := ours.Authority.Server(t, []string{"shop.example"})
	before := newTestGateway(t, c, noPolicies)
	g, err := before.Next(Options{
		Config: c, Policies: noPolicies, Metrics: before.metrics, Log: before.log, Limiter: before.limiter,
		States: before.states,
		Routing: &routing.Table{
			Listeners: []routing.Listener{{Gateway: "ns/gw", Section: "https", Port: 444, TLS: &routing.ListenerTLS{
				Certificates: []routing.Certificate{{Chain: pair.Cert, Key: pair.Key}}, ClientCAs: ours.Clients.PEM,
			}}},
			Routes: []routing.Route{{
				Kind: "HTTPRoute", Namespace: "ns", Name: "all", Rule: "0", Attachments: []routing.Attachment{{}},
				Matches:  []routing.Match{{Path: routing.PathMatch{Value: "/"}}},
				Backends: []routing.WeightedBackend{{Weight: 1}},
			}},
			Backends: []routing.Backend{{Name: "ns/api:80", Servers: []string{strings.TrimPrefix(api, "http://")}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Replace(before, func() {})
	at := opened{}
	openAll(t, g, at)
	t.Cleanup(func() { _ = g.Shutdown(t.Context()) })
	alice := &tls.Config{ServerName: "shop.example",
		Certificates: []tls.Certificate{ours.Clients.Client(t, "alice", nil).TLS(t)}}
	for address, want := range map[string]int{":443": 200, ":444": 401} {
		if answer, body := says(t, at[address], "", alice,
			"GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"); answer.StatusCode != want {
			t.Errorf("%s: answered %d %s, want %d", address, answer.StatusCode, body, want)
		}
	}
	if expiries := g.files.Expiries(); expiries["ns/gw/https"].IsZero() || expiries["the public listener"].IsZero() {
		t.Errorf("the certificates that expire are %v", expiries)
	}
}

// TestListenersReload: another configuration has other listeners, and unchanged certificates are kept.
func TestListenersReload(t *testing.T) {
	files := newTLS(t, credentials.ServerFiles{}).Files
	load := func(listeners string) *config.Configuration {
		file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: ''\nlisteners: ["+listeners+"]\n"+
			"upstreams: [{name: a, endpoints: ['http://127.0.0.1:1'], dialect: Plain}]\n")
		c, err := config.Load(file, config.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	secure := "tls: {certFile: " + files.Cert + ", keyFile: " + files.Key
	g := newTestGateway(t, load("{name: a, listen: ':1', "+secure+"}}"), noPolicies)
	next := func(listeners string, table *routing.Table) (*Gateway, error) {
		return g.Next(Options{Config: load(listeners), Routing: table, Policies: noPolicies, Metrics: g.metrics,
			Log: g.log, Limiter: g.limiter, States: g.states})
	}
	same, err := next("{name: a, listen: ':2', hosts: [b.example], "+secure+"}}, {name: c, listen: ':3'}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(same.Addresses()); got != "[:2 :3]" {
		t.Errorf("the addresses are %s", got)
	}
	if before, after := g.listening.certificates, same.listening.certificates; len(before) != 1 ||
		!maps.Equal(before, after) {
		t.Errorf("certificates are read again: %v, %v", before, after)
	}
	same.Discard()
	for _, shown := range g.listening.certificates {
		if n := shown.lease.holders.Load(); n != 1 {
			t.Errorf("%d hold the certificates", n)
		}
	}
	if _, err := next("{name: b, listen: ':2'}, {name: c, listen: ':3', "+secure+", clientCAFile: /none}}",
		nil); err == nil ||
		err.Error() != "listeners[1].tls: the file '/none' may not be read: no such file or directory" {
		t.Errorf("got %v", err)
	}
	pair := credentialstest.NewAuthority(t, "a").Server(t, []string{"shop.example"})
	table := &routing.Table{Listeners: []routing.Listener{
		{Gateway: "ns/gw", Section: "http", Port: 80},
		{Gateway: "ns/gw", Section: "bad", Port: 443, Host: "bad.example",
			TLS: &routing.ListenerTLS{Certificates: []routing.Certificate{{Chain: []byte("x"), Key: []byte("y")}}}},
		{Gateway: "ns/gw", Section: "https", Port: 443, Host: "*.example",
			TLS: &routing.ListenerTLS{Certificates: []routing.Certificate{{Chain: pair.Cert, Key: pair.Key}}}},
		{Gateway: "ns/gw", Section: "mixed", Port: 80,
			TLS: &routing.ListenerTLS{Certificates: []routing.Certificate{{Chain: pair.Cert, Key: pair.Key}}}},
	}}
	tabled, err := next("{name: a, listen: ':1'}", table)
	if err != nil {
		t.Fatal(err)
	}
	defer tabled.Discard()
	if got := fmt.Sprint(tabled.Addresses()); got != "[:1 :80 :443]" {
		t.Errorf("the addresses are %s", got)
	}
	at := tabled.listening.set
	if made := at.Socket(":443").Made("bad.example"); made == nil || made.Name != "ns/gw/https" || made.Routes != 3 {
		t.Errorf("the listener is %+v", made)
	}
	if l, _ := at.Take(at.Socket(":80"), nil, false, []byte("any")); l == nil || l.Name != "ns/gw/http" ||
		l.Routes != 1 {
		t.Errorf("the listener is %+v", l)
	}
}
