package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// TestOverTLS runs the tests of requests, bodies and streams with TLS at either end and at both:
// TLS is the normal case.
func TestOverTLS(t *testing.T) {
	tests := map[string]func(*testing.T){
		"TestHostileInput":          TestHostileInput,
		"TestDeadlines":             TestDeadlines,
		"TestUnreadBody":            TestUnreadBody,
		"TestPanic":                 TestPanic,
		"TestDrain":                 TestDrain,
		"TestShutdownCuts":          TestShutdownCuts,
		"TestBodies":                TestBodies,
		"TestBodyLimit":             TestBodyLimit,
		"TestAnnouncedBodies":       TestAnnouncedBodies,
		"TestBodyBudget":            TestBodyBudget,
		"TestExpectContinue":        TestExpectContinue,
		"TestEventByEvent":          TestEventByEvent,
		"TestAnswersPassed":         TestAnswersPassed,
		"TestBrokenStream":          TestBrokenStream,
		"TestClientLeaves":          TestClientLeaves,
		"TestPipelinedBehindStream": TestPipelinedBehindStream,
		"TestShutdownEndsStreams":   TestShutdownEndsStreams,
		"TestStreamMemory":          TestStreamMemory,
	}
	for _, ends := range testutil.Sampled(3, []string{"both", "listener", "backend"}) {
		t.Run(ends, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, test)
			}
		})
	}
}

// shown says who a client is, or why its request was refused.
type shown struct {
	names, problem, proto string
}

// startTLS serves requests by answering with the client's identity.
func startTLS(t testing.TB, s *h1test.TLS, o Options) (addr string, seen chan shown) {
	t.Helper()
	o.Listeners = listeners.Any(s.Server)
	seen = make(chan shown, 64)
	_, addr = startServer(t, o, func(r *Request) {
		code := 200
		chain, err := r.Peer().Chain()
		one := shown{proto: r.Peer().Proto}
		for _, cert := range chain {
			one.names += "/" + cert.Subject.CommonName
		}
		if err != nil {
			one.problem = err.Error()
		}
		if r.Refusal != nil {
			one.problem = r.Refusal.Error()
			code = int(r.Refusal.ErrStatus.Code)
		}
		seen <- one
		reply(r, code)
	})
	return strings.TrimPrefix(addr, h1test.SecureScheme), seen
}

// askTLS makes a connection with these settings, and one request on it.
func askTLS(t testing.TB, addr string, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	nc, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
	if _, err := io.WriteString(nc, h1test.GetHead+"\r\n"); err != nil {
		return nc.ConnectionState(), err
	}
	answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err == nil {
		_ = answer.Body.Close()
	}
	return nc.ConnectionState(), err
}

// Who connects, and what is known of them.
func TestClientCertificates(t *testing.T) {
	for _, c := range []struct {
		name  string
		auth  tls.ClientAuthType
		show  func(t *testing.T, s *h1test.TLS) []tls.Certificate
		want  shown
		fails string // the client's error if there is no connection
	}{
		{"none asked for", tls.NoClientCert, one("alice"), shown{proto: "https"}, ""},
		{"requested and not shown", tls.RequestClientCert, nil, shown{proto: "https"}, ""},
		{"requested and shown", tls.RequestClientCert, one("alice"), shown{names: "/alice/clients", proto: "https"},
			""},
		{"required and not shown", tls.RequireAndVerifyClientCert, nil, shown{},
			"remote error: tls: certificate required"},
		{"required and shown", tls.RequireAndVerifyClientCert, one("alice"),
			shown{names: "/alice/clients", proto: "https"}, ""},
		{"requested, by way of another authority", tls.RequestClientCert,
			func(t *testing.T, s *h1test.TLS) []tls.Certificate {
				return []tls.Certificate{credentialstest.NewAuthority(t, "clients").Client(t, "mallory", nil).TLS(t)}
			}, shown{problem: "x509: certificate signed by unknown authority", proto: "https"}, ""},
		{"required, by way of another authority", tls.RequireAndVerifyClientCert,
			func(t *testing.T, s *h1test.TLS) []tls.Certificate {
				return []tls.Certificate{credentialstest.NewAuthority(t, "clients").Client(t, "mallory", nil).TLS(t)}
			}, shown{}, "remote error: tls: unknown certificate authority"},
		{"requested, expired", tls.RequestClientCert, one("alice", credentialstest.Expired),
			shown{problem: "x509: certificate has expired or is not yet valid", proto: "https"}, ""},
		{"required, expired", tls.RequireAndVerifyClientCert, one("alice", credentialstest.Expired), shown{},
			"remote error: tls: expired certificate"},
		{"a server's", tls.RequestClientCert, func(t *testing.T, s *h1test.TLS) []tls.Certificate {
			return []tls.Certificate{s.Clients.Server(t, []string{"a"}).TLS(t)}
		}, shown{problem: "x509: certificate specifies an incompatible key usage", proto: "https"}, ""},
		{"signed by one who may not sign", tls.RequestClientCert, func(t *testing.T, s *h1test.TLS) []tls.Certificate {
			return []tls.Certificate{s.Authority.Client(t, "alice", nil).TLS(t)}
		}, shown{problem: "x509: certificate signed by unknown authority", proto: "https"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := h1test.NewTLS(t, credentials.ServerFiles{ClientAuth: c.auth})
			addr, seen := startTLS(t, s, Options{})
			settings := &tls.Config{RootCAs: s.Authority.Pool(), ServerName: "gw.example.com"}
			if c.show != nil {
				certificates := c.show(t, s)
				settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
					error) {
					return &certificates[0], nil
				}
			}
			_, err := askTLS(t, addr, settings)
			if c.fails != "" {
				if err == nil || err.Error() != c.fails {
					t.Errorf("got %v, want %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := <-seen
			if got.names != c.want.names || got.proto != c.want.proto ||
				!strings.HasPrefix(got.problem, c.want.problem) || (got.problem == "") != (c.want.problem == "") {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func one(user string, change ...func(*x509.Certificate)) func(*testing.T, *h1test.TLS) []tls.Certificate {
	return func(t *testing.T, s *h1test.TLS) []tls.Certificate {
		return []tls.Certificate{s.Clients.Client(t, user, []string{"team-a"}, change...).TLS(t)}
	}
}

// The versions and protocols that are spoken.
func TestTLSVersions(t *testing.T) {
	for _, c := range []struct {
		name  string
		least uint16
		ask   *tls.Config
		want  uint16
		fails string
	}{
		{"1.3", 0, &tls.Config{}, tls.VersionTLS13, ""},
		{"1.2", 0, &tls.Config{MaxVersion: tls.VersionTLS12}, tls.VersionTLS12, ""},
		{"1.1", 0, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, 0,
			"remote error: tls: protocol version not supported"},
		{"1.2 where 1.3 is the least", tls.VersionTLS13, &tls.Config{MaxVersion: tls.VersionTLS12}, 0,
			"remote error: tls: protocol version not supported"},
		{"HTTP/2 among others", 0, &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, tls.VersionTLS13, ""},
		{"HTTP/2 alone", 0, &tls.Config{NextProtos: []string{"h2"}}, 0, "remote error: tls: no application protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := h1test.NewTLS(t, credentials.ServerFiles{MinVersion: c.least})
			addr, _ := startTLS(t, s, Options{})
			settings := c.ask.Clone()
			settings.RootCAs = s.Authority.Pool()
			got, err := askTLS(t, addr, settings)
			if c.fails != "" {
				if err == nil || err.Error() != c.fails {
					t.Errorf("got %v, want %s", err, c.fails)
				}
				return
			}
			if err != nil || got.Version != c.want || settings.NextProtos != nil &&
				got.NegotiatedProtocol != "http/1.1" {
				t.Errorf("got %v, %x, %q", err, got.Version, got.NegotiatedProtocol)
			}
		})
	}
}

// Files that change are in use by the next connection, but files that cannot be used never are.
// Requests go on meanwhile.
func TestTLSFilesChange(t *testing.T) {
	s := h1test.NewTLS(t, credentials.ServerFiles{ClientAuth: tls.RequestClientCert})
	addr, seen := startTLS(t, s, Options{})
	alice := s.Clients.Client(t, "alice", nil).TLS(t)
	both := s.Authority.Pool()
	next := credentialstest.NewAuthority(t, "next")
	both.AddCert(next.Cert)
	settings := &tls.Config{RootCAs: both, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate,
		error) {
		return &alice, nil
	}}
	// alice stays on one connection all the time.
	kept, err := tls.Dial("tcp", addr, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	keptReader := bufio.NewReader(kept)
	pair := next.Server(t, []string{"127.0.0.1"})
	for _, step := range []struct {
		name   string
		change func()
		signed string // who signed what the server shows
		alice  string // the identity in her certificate
	}{
		{"at first", func() {}, "servers", "/alice/clients"},
		{"a key without its certificate", func() { credentialstest.WriteFile(t, s.Dir, "tls.key", pair.Key) },
			"servers", "/alice/clients"},
		{"the certificate too", func() { credentialstest.WriteFile(t, s.Dir, "tls.crt", pair.Cert) }, "next",
			"/alice/clients"},
		{"no certificate", func() { credentialstest.WriteFile(t, s.Dir, "tls.crt", nil) }, "next", "/alice/clients"},
		{"no file", func() { _ = os.Remove(filepath.Join(s.Dir, "tls.crt")) }, "next", "/alice/clients"},
		{"authorities of clients that are none", func() {
			credentialstest.WriteFile(t, s.Dir, "tls.crt", pair.Cert)
			credentialstest.WriteFile(t, s.Dir, "ca.crt", []byte("none"))
		}, "next", "/alice/clients"},
		{"other authorities of clients", func() { credentialstest.WriteFile(t, s.Dir, "ca.crt", next.PEM) }, "next",
			""},
		{"both authorities",
			func() { credentialstest.WriteFile(t, s.Dir, "ca.crt", append(next.PEM, s.Clients.PEM...)) }, "next",
			"/alice/clients"},
	} {
		step.change()
		s.Watcher.Reload()
		got, err := askTLS(t, addr, settings)
		if err != nil || got.PeerCertificates[0].Issuer.CommonName != step.signed {
			t.Errorf("%s: %v, signed by %s", step.name, err, got.PeerCertificates[0].Issuer.CommonName)
		}
		if one := <-seen; one.names != step.alice || (one.problem == "") != (step.alice != "") {
			t.Errorf("%s: %+v", step.name, one)
		}
		h1test.Send(t, kept, h1test.GetHead+"\r\n")
		h1test.ReadAnswer(t, keptReader, false)
		if one := <-seen; one.names != step.alice {
			t.Errorf("%s: on a connection from before: %+v", step.name, one)
		}
	}
}

// A client certificate proves nothing once it has expired, though the connection lasts.
func TestClientCertificateExpires(t *testing.T) {
	s := h1test.NewTLS(t, credentials.ServerFiles{ClientAuth: tls.RequestClientCert})
	p := Peer{Made: &listeners.Listener{TLS: s.Server}}
	alice := s.Clients.Client(t, "alice", nil)
	p.Shown = []*x509.Certificate{alice.Leaf}
	if chain, err := p.Chain(); err != nil || len(chain) != 2 {
		t.Fatalf("%v, %v", chain, err)
	}
	p.Shown = []*x509.Certificate{s.Clients.Client(t, "alice", nil, credentialstest.Expired).Leaf}
	if chain, err := p.Chain(); err != nil || len(chain) != 2 {
		t.Fatalf("the verdict is not kept: %v, %v", chain, err)
	}
	p.verdict.until = time.Now().Add(-time.Second)
	if chain, err := p.Chain(); err == nil || chain != nil {
		t.Errorf("%v, %v", chain, err)
	}
}

// What does not speak TLS, or too slowly, gets no further; plain HTTP gets an answer that says so.
// None of it holds up others.
func TestNoHandshake(t *testing.T) {
	s := h1test.NewTLS(t, credentials.ServerFiles{})
	var mu sync.Mutex
	failed := 0
	addr, seen := startTLS(t, s, Options{HeadTimeout: 100 * time.Millisecond, HandshakeFailed: func() {
		mu.Lock()
		defer mu.Unlock()
		failed++
	}})
	// One says nothing for all of its time.
	silent, silentReader := h1test.Dial(t, addr)
	for _, c := range []struct{ sent, want string }{
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		{"POST /v2/orders HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 100_000), "400"},
		{"DELETE /a HTTP/1.1\r\n\r\n", "400"},
		{"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		{"SSH-2.0-OpenSSH_9.6\r\n", ""},
		{"\x16\x03\x01\x00\x05hello", ""},
		{"\x00\x00\x00\x00\x00\x00", ""},
	} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, c.sent)
		if c.want == "" {
			if rest, err := io.ReadAll(br); bytes.Contains(rest, []byte("HTTP")) || err != nil && !h1test.IsReset(err) {
				t.Errorf("%.10q is answered %q, %v", c.sent, rest, err)
			}
			continue
		}
		got, closes := h1test.ReadAnswer(t, br, strings.HasPrefix(c.sent, "HEAD"))
		if got.StatusCode != 400 || !closes {
			t.Errorf("%.10q is answered %d, close %v", c.sent, got.StatusCode, closes)
		}
		if one := <-seen; one.problem != "the client sent an HTTP request to an HTTPS server" || one.proto != "http" {
			t.Errorf("%+v", one)
		}
	}
	if rest, err := io.ReadAll(silentReader); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("%q, %v", rest, err)
	}
	_ = silent
	mu.Lock()
	defer mu.Unlock()
	if failed != 8 {
		t.Errorf("%d handshakes failed, want 8", failed)
	}
}

// A shutdown waits neither for handshakes nor for idle connections.
func TestShutdownDuringHandshake(t *testing.T) {
	s := h1test.NewTLS(t, credentials.ServerFiles{})
	server, addr := startServer(t, Options{Listeners: listeners.Any(s.Server)}, func(r *Request) { reply(r, 200) })
	raw, rawReader := h1test.Dial(t, strings.TrimPrefix(addr, h1test.SecureScheme))
	h1test.Send(t, raw, "\x16\x03\x01")
	idle, idleReader := h1test.Dial(t, addr)
	h1test.Send(t, idle, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, idleReader, false)
	testutil.Eventually(t, "both to be connected", func() bool { return server.Open() == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(rawReader); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("%q, %v", rest, err)
	}
	if rest, err := io.ReadAll(idleReader); len(rest) > 0 || err != nil {
		t.Errorf("the idle connection does not end as TLS has it: %q, %v", rest, err)
	}
}

// A stream over TLS ends for the client as one that is broken if the backend breaks off, even
// without chunks.
func TestBrokenStreamOverTLS(t *testing.T) {
	url, conns := h1test.Driven(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{url}})
	s := h1test.NewTLS(t, credentials.ServerFiles{})
	_, addr := r.start(t, Options{Listeners: listeners.Any(s.Server)})
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, "GET /v2/orders?watch=true HTTP/1.0\r\n\r\n")
	backend, _ := h1test.Accept(t, conns)
	h1test.Send(t, backend, h1test.ChunkedHead+"2\r\n{}\r\n")
	answer, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	h1test.Expect(t, answer.Body, "{}")
	_ = backend.Close()
	if rest, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the body seems complete after %q", rest)
	}
}
