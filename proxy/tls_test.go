package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// TestOverTLS runs the tests of requests, bodies and streams with TLS at either end and at both: TLS is the normal
// case. The golden scenarios, which are many, run once, and not in short mode.
func TestOverTLS(t *testing.T) {
	tests := map[string]func(*testing.T){
		"TestWatchStreams":        TestWatchStreams,
		"TestWatchFilled":         TestWatchFilled,
		"TestWatchBreaksOff":      TestWatchBreaksOff,
		"TestWatchFilledEnds":     TestWatchFilledEnds,
		"TestItemWatched":         TestItemWatched,
		"TestListFilledAsItComes": TestListFilledAsItComes,
		"TestHugeList":            TestHugeList,
		"TestLargeObjectsFilled":  TestLargeObjectsFilled,
		"TestLogFollowed":         TestLogFollowed,
		"TestLeavesBehindStream":  TestClientLeavesBehindStream,
		"TestGolden":              TestGolden,
	}
	for _, ends := range testutil.Sampled(3, []string{"both", "listener", "backend"}) {
		t.Run(ends, func(t *testing.T) {
			for name, test := range tests {
				if name != "TestGolden" || ends == "both" && !testing.Short() {
					t.Run(name, test)
				}
			}
		})
	}
}

// secureEnds puts TLS into a configuration, between the gateway and its clients and before its backends.
func secureEnds(t testing.TB, c *config.Configuration, over, behind bool) {
	t.Helper()
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; behind {
			u.TLS = &config.UpstreamTLS{InsecureSkipTLSVerify: true}
			for j, endpoint := range u.Endpoints {
				u.Endpoints[j] = strings.Replace(endpoint, "http://", "https://", 1)
			}
		}
	}
	if over {
		files := newTLS(t, credentials.ServerFiles{}).Files
		c.TLS = &config.ListenerTLS{CertFile: files.Cert, KeyFile: files.Key,
			ClientCertificates: config.IgnoreCertificates, MinVersion: config.VersionTLS12}
	}
}

// The whole gateway by TLS: the headers that a backend gets, and the configuration that is served.
func TestGatewayOverTLS(t *testing.T) {
	s := newTLS(t, credentials.ServerFiles{ClientAuth: tls.RequestClientCert})
	behind := scenario.NewBackend(t, listenBackend(t), nil)
	c, err := config.Load("", config.Flags{Upstream: "http://" + behind.Address, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.TLS = &config.ListenerTLS{CertFile: s.Files.Cert, KeyFile: s.Files.Key, ClientCAFile: s.Files.ClientCA,
		ClientCertificates: config.RequireCertificates, MinVersion: config.VersionTLS13}
	g := newTestGateway(t, c, noPolicies)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ln) }()
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: s.Authority.Pool(), Certificates: []tls.Certificate{s.Clients.Client(t, "alice", nil).TLS(t)},
	}}}
	for range 2 {
		answer, err := client.Get("https://" + ln.Addr().String() + "/v2/orders/1")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if got := string(behind.Received()); !strings.Contains(got, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the backend got %q", got)
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Authority.Pool()}}}
	if answer, err := stranger.Get("https://" + ln.Addr().String() + "/v2/orders/1"); err == nil {
		_ = answer.Body.Close()
		t.Error("a client without a certificate is served")
	}
	client.CloseIdleConnections()
	if err := g.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	c.TLS.CertFile = filepath.Join(s.Dir, "none")
	if _, err := New(Options{Config: c, Policies: noPolicies, States: g.states, Metrics: g.metrics,
		Log: g.log}); err == nil || err.Error() != "tls: the file '"+c.TLS.CertFile+
		"' may not be read: no such file or directory" {
		t.Errorf("got %v", err)
	}
}
