package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// secureBackend is a backend that speaks TLS and notes who asks it.
type secureBackend struct {
	url     string
	mu      sync.Mutex
	pair    tls.Certificate
	asks    []string // "PATH by CERTIFICATE, AUTHORIZATION, as IMPERSONATED"
	names   []string // that it was asked for in handshakes
	answers int      // the status code; 0 is 200
}

func newSecureBackend(t *testing.T, pair credentialstest.Pair) *secureBackend {
	t.Helper()
	b := &secureBackend{pair: pair.TLS(t)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.url = "https://" + ln.Addr().String()
	server := &http.Server{Handler: b, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	settings := &tls.Config{ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"}}
	settings.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.names = append(b.names, hello.ServerName)
		pair := b.pair
		return &pair, nil
	}
	go func() { _ = server.Serve(tls.NewListener(ln, settings)) }()
	t.Cleanup(func() { _ = server.Close() })
	return b
}

func (b *secureBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hasNoDiscovery(w, r) {
		return
	}
	by := "nobody"
	if shown := r.TLS.PeerCertificates; len(shown) > 0 {
		by = shown[0].Issuer.CommonName + "/" + shown[0].Subject.CommonName
	}
	as := r.Header.Get("Impersonate-User") + r.Header.Get("X-Remote-User")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks = append(b.asks, fmt.Sprintf("%s by %s, %s, as %s", r.URL.Path, by, r.Header.Get("Authorization"), as))
	w.Header().Set("Content-Type", "application/json")
	if b.answers != 0 {
		w.WriteHeader(b.answers)
	}
	_, _ = io.WriteString(w, "{}")
}

// take returns what was asked since the last call.
func (b *secureBackend) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.asks = nil }()
	return strings.Join(b.asks, "\n")
}

func (b *secureBackend) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// served is a gateway on a port of this machine.
type served struct {
	*Gateway
	url   string
	files *credentials.Watcher
	log   *syncBuffer
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// serve starts a gateway with one upstream.
func serve(t *testing.T, u config.UpstreamSpec) *served {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: "http://unused", Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	full := c.Upstreams[0]
	full.Endpoints, full.TLS, full.TokenFile, full.Credentials = u.Endpoints, u.TLS, u.TokenFile, u.Credentials
	c.Upstreams[0] = full
	return serveConfig(t, c)
}

func serveConfig(t *testing.T, c *config.Configuration) *served {
	t.Helper()
	if u := &c.Upstreams[0]; u.Credentials == config.FrontProxyCredentials ||
		u.Credentials == config.ImpersonateCredentials {
		c.Identity = headerIdentity(config.AllowAnonymous)
	}
	metrics, err := telemetry.New(telemetry.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.files = credentials.NewWatcher(credentials.Options{Log: log})
	s.Gateway, err = New(Options{
		Config: c, Policies: noPolicies, Limiter: ratelimit.New(0), States: newStates(t, noPolicies()),
		Credentials: s.files, Metrics: metrics, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	s.url = "http://" + ln.Addr().String()
	return s
}

// client asks as a client with its own token.
func (s *served) client(t *testing.T, path string) (code int, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer client")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// itself asks on the gateway's own account.
func (s *served) itself(path string) (state.Response, error) {
	return s.Backend("", "/").Send(context.Background(), state.Request{Method: "GET", Target: path, Limit: 1 << 20})
}

// Who the backend takes for whom: the gateway's certificate and token are shown by its own requests
// alone, unless it names the user to the backend.
func TestServiceAccount(t *testing.T) {
	authority := credentialstest.NewAuthority(t, "ours")
	for _, c := range []struct {
		name              string
		certificate       bool
		token             string
		credentials       config.Credentials
		client, itself    string
		severalConnection bool
	}{
		{"nobody", false, "", config.PassCredentials, "/c by nobody, Bearer client, as ", "/g by nobody, , as ", false},
		{"token", false, "own", config.PassCredentials, "/c by nobody, Bearer client, as ",
			"/g by nobody, Bearer own, as ", false},
		{"certificate", true, "", config.PassCredentials, "/c by nobody, Bearer client, as ",
			"/g by ours/gateway, , as ", true},
		{"certificate and token", true, "own", config.PassCredentials, "/c by nobody, Bearer client, as ",
			"/g by ours/gateway, Bearer own, as ", true},
		{"front proxy", true, "", config.FrontProxyCredentials, "/c by ours/gateway, , as system:anonymous",
			"/g by ours/gateway, , as ", false},
		{"impersonates by its certificate", true, "", config.ImpersonateCredentials,
			"/c by ours/gateway, , as system:anonymous", "/g by ours/gateway, , as ", false},
		{"impersonates by its token", false, "own", config.ImpersonateCredentials,
			"/c by nobody, Bearer own, as system:anonymous", "/g by nobody, Bearer own, as ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			behind := newSecureBackend(t, authority.Server(t, []string{"127.0.0.1"}))
			u := config.UpstreamSpec{Endpoints: []string{behind.url}, Credentials: c.credentials,
				TLS: &config.UpstreamTLS{CAFile: credentialstest.WriteFile(t, dir, "ca.crt", authority.PEM)}}
			if c.certificate {
				u.TLS.CertFile, u.TLS.KeyFile = authority.Client(t, "gateway", nil).Write(t, dir, "tls")
			}
			if c.token != "" {
				u.TokenFile = credentialstest.WriteFile(t, dir, "token", []byte(c.token+"\n"))
			}
			s := serve(t, u)
			// Several times, and in turn, so that connections are used again.
			for range 3 {
				path := "/c"
				r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.credentials == config.PassCredentials {
					r.Header.Set("Authorization", "Bearer client")
				}
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if got := behind.take(); answer.StatusCode != 200 || got != c.client {
					t.Errorf("a client's request is answered %d and came as %s, want %s", answer.StatusCode, got,
						c.client)
				}
				if _, err := s.itself("/g"); err != nil {
					t.Fatal(err)
				}
				if got := behind.take(); got != c.itself {
					t.Errorf("the gateway's own came as %s, want %s", got, c.itself)
				}
			}
			b := s.routes.backends[0]
			if (b.own != b.client) != c.severalConnection {
				t.Errorf("connections of the gateway's own: %v", b.own != b.client)
			}
		})
	}
}

// How a backend is known, and what clients and logs show of one that is not.
func TestUnknownBackend(t *testing.T) {
	ours, theirs := credentialstest.NewAuthority(t, "ours"), credentialstest.NewAuthority(t, "theirs")
	const unreachable = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend cannot be reached","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`
	for _, c := range []struct {
		name   string
		server credentialstest.Pair
		tls    config.UpstreamTLS // without CAFile, which is ours
		system bool               // no CAFile either
		log    string             // "" if it is known
		asked  string             // the name in the handshake
	}{
		{"known", ours.Server(t, []string{"127.0.0.1"}), config.UpstreamTLS{}, false, "", ""},
		{"another authority", theirs.Server(t, []string{"127.0.0.1"}), config.UpstreamTLS{}, false,
			"certificate signed by unknown authority", ""},
		{"the system's authorities", ours.Server(t, []string{"127.0.0.1"}), config.UpstreamTLS{}, true,
			"certificate signed by unknown authority", ""},
		{"expired", ours.Server(t, []string{"127.0.0.1"}, credentialstest.Expired), config.UpstreamTLS{}, false,
			"certificate has expired or is not yet valid", ""},
		{"another name", ours.Server(t, []string{"orders.internal"}), config.UpstreamTLS{}, false,
			"cannot validate certificate for 127.0.0.1", ""},
		{"the name that is asked for", ours.Server(t, []string{"orders.internal"}),
			config.UpstreamTLS{ServerName: "orders.internal"}, false, "", "orders.internal"},
		{"not the name that is asked for", ours.Server(t, []string{"127.0.0.1"}),
			config.UpstreamTLS{ServerName: "orders.internal"}, false, "certificate is not valid for any names",
			"orders.internal"},
		{"a client's certificate",
			ours.Client(t, "server", nil,
				func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }), config.UpstreamTLS{},
			false, "incompatible key usage", ""},
		{"whoever answers", theirs.Server(t, []string{"elsewhere"}, credentialstest.Expired),
			config.UpstreamTLS{InsecureSkipTLSVerify: true}, true, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind := newSecureBackend(t, c.server)
			settings := c.tls
			if !c.system {
				settings.CAFile = credentialstest.WriteFile(t, t.TempDir(), "ca.crt", ours.PEM)
			}
			s := serve(t, config.UpstreamSpec{Endpoints: []string{behind.url}, TLS: &settings})
			code, body := s.client(t, "/c")
			if c.log == "" && (code != 200 || behind.take() == "") || c.log != "" &&
				(code != 503 || body != unreachable || behind.take() != "") {
				t.Errorf("answered %d %s", code, body)
			}
			if !strings.Contains(s.log.String(), c.log) {
				t.Errorf("the log does not tell '%s':\n%s", c.log, s.log)
			}
			if warns := strings.Contains(s.log.String(),
				"whoever answers is taken for the backend"); warns != settings.InsecureSkipTLSVerify {
				t.Errorf("the log:\n%s", s.log)
			}
			if behind.names[0] != c.asked {
				t.Errorf("asked for the names %q", behind.names)
			}
		})
	}
}

// Files change while requests run: none of them fails, and what comes after the change is as it says.
func TestServiceAccountChanges(t *testing.T) {
	ours, next := credentialstest.NewAuthority(t, "ours"), credentialstest.NewAuthority(t, "next")
	dir := t.TempDir()
	behind := newSecureBackend(t, ours.Server(t, []string{"127.0.0.1"}))
	u := config.UpstreamSpec{Endpoints: []string{behind.url},
		TLS: &config.UpstreamTLS{CAFile: credentialstest.WriteFile(t, dir, "ca.crt", ours.PEM)}}
	u.TLS.CertFile, u.TLS.KeyFile = ours.Client(t, "gateway", nil).Write(t, dir, "tls")
	u.TokenFile = credentialstest.WriteFile(t, dir, "token", []byte("one\n"))
	s := serve(t, u)
	stop := make(chan struct{})
	var running sync.WaitGroup
	var answered [4]atomic.Int64
	for i := range answered {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if code, body := s.client(t, "/c"); code != 200 {
					t.Errorf("a request is answered %d %s", code, body)
					return
				}
				answered[i].Add(1)
			}
		})
	}
	// underWay waits for the requests that are under way, with what they began to do at the backend.
	underWay := func() {
		for i := range answered {
			before := answered[i].Load()
			testutil.Eventually(t, "each client has another answer",
				func() bool { return t.Failed() || answered[i].Load() > before })
		}
	}
	own := func(step, want string) {
		t.Helper()
		s.files.Reload()
		if _, err := s.itself("/own"); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if got := behind.take(); !strings.Contains(got, "/own by "+want+", as ") {
			t.Errorf("%s: want %s", step, want)
		} else if strings.Contains(got, "/c by ours") || strings.Contains(got, "/c by next") {
			t.Errorf("%s: a client's request came by the gateway's certificate", step)
		}
	}
	own("at first", "ours/gateway, Bearer one")
	credentialstest.WriteFile(t, dir, "token", []byte("two"))
	own("another token", "ours/gateway, Bearer two")
	credentialstest.WriteFile(t, dir, "token", []byte("not\na token"))
	own("no token", "ours/gateway, Bearer two")
	credentialstest.WriteFile(t, dir, "token", []byte("three"))
	next.Client(t, "gateway-2", nil).Write(t, dir, "tls")
	own("another certificate", "next/gateway-2, Bearer three")
	_ = os.Remove(filepath.Join(dir, "tls.key"))
	own("no key", "next/gateway-2, Bearer three")
	next.Client(t, "gateway-3", nil).Write(t, dir, "tls")
	credentialstest.WriteFile(t, dir, "ca.crt", append(next.PEM, ours.PEM...))
	own("one authority more", "next/gateway-3, Bearer three")
	underWay() // handshakes with the authority before, which does not know the server's next certificate
	behind.set(func() { behind.pair = next.Server(t, []string{"127.0.0.1"}).TLS(t) })
	credentialstest.WriteFile(t, dir, "token", []byte("four"))
	own("another server", "next/gateway-3, Bearer four")
	underWay() // handshakes with the certificate before, whose authority goes now
	credentialstest.WriteFile(t, dir, "ca.crt", next.PEM)
	own("one authority less", "next/gateway-3, Bearer four")
	close(stop)
	running.Wait()
	if t.Failed() {
		t.Log(s.log)
	}
}

// What an account cannot be made of ends the start.
func TestBadAccounts(t *testing.T) {
	dir := t.TempDir()
	authority := credentialstest.NewAuthority(t, "ours")
	cert, key := authority.Client(t, "gateway", nil).Write(t, dir, "tls")
	_, other := authority.Client(t, "other", nil).Write(t, dir, "other")
	text := credentialstest.WriteFile(t, dir, "text", []byte("no PEM"))
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		tls   config.UpstreamTLS
		token string
		want  string
	}{
		{config.UpstreamTLS{CAFile: none}, "", "the file 'DIR/none' may not be read: no such file or directory"},
		{config.UpstreamTLS{CAFile: text}, "", "the authorities in 'DIR/text' cannot be used: must hold at least one certificate in PEM"},
		{config.UpstreamTLS{CertFile: cert, KeyFile: none}, "",
			"the file 'DIR/none' may not be read: no such file or directory"},
		{config.UpstreamTLS{CertFile: cert, KeyFile: other}, "", "the certificate in 'DIR/tls.crt' and the key in 'DIR/other.key' cannot be used: tls: private key does not match public key"},
		{config.UpstreamTLS{CertFile: text, KeyFile: key}, "", "the certificate in 'DIR/text' and the key in 'DIR/tls.key' cannot be used: tls: failed to find any PEM data in certificate input"},
		{config.UpstreamTLS{}, none, "the file 'DIR/none' may not be read: no such file or directory"},
		{config.UpstreamTLS{}, text, "the file 'DIR/text' must hold a token: at most 65536 printable ASCII characters"},
	} {
		conf, err := config.Load("", config.Flags{Upstream: "https://127.0.0.1:1", Dialect: "Kubernetes"})
		if err != nil {
			t.Fatal(err)
		}
		conf.Upstreams[0].TLS, conf.Upstreams[0].TokenFile = &c.tls, c.token
		_, err = (&Gateway{common: &common{files: credentials.NewWatcher(credentials.Options{})}}).newRoutes(
			&Options{Config: conf}, nil)
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != "upstream 'default': "+c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestOwnBackends: the upstream of the name is asked, or else the upstream to which a route leads for the path.
func TestOwnBackends(t *testing.T) {
	c, err := config.Load("", config.Flags{Upstream: "http://127.0.0.1:1", Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams = []config.UpstreamSpec{{Name: "a", Endpoints: []string{"http://127.0.0.1:1/"}},
		{Name: "b", Endpoints: []string{"http://b.example.com"}, Dialect: config.Plain}}
	c.Routes = []config.Route{{PathPrefix: "/v2", Upstream: "b"},
		{Host: "a.example.com", PathPrefix: "/", Upstream: "a"}}
	set := noPolicies()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	for _, step := range []struct{ name, path, want, host string }{
		{"a", "/v2/x", "a", "127.0.0.1:1"}, {"b", "/x", "b", "b.example.com"}, {"", "/v2/x", "b", "b.example.com"},
		{"", "/x", "", ""}, {"c", "/v2/x", "", ""},
	} {
		b, found := g.Backend(step.name, step.path).(*backend)
		switch {
		case !found && step.want == "":
		case !found || b.name != step.want || b.host != step.host || b.kind.authorizes() == (step.want == "b"):
			t.Errorf("'%s' with %s: %v", step.name, step.path, b)
		}
	}
}
