package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// execPath is a path on which an upgrade is allowed by default.
const execPath = "/api/v1/namespaces/team-a/pods/web/exec?command=sh"

// askUpgrade is a client's request for an upgrade.
func askUpgrade(method, path, protocol string, more ...string) string {
	head := method + " " + path + " HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n"
	for _, line := range more {
		head += line + "\r\n"
	}
	return head + "\r\n"
}

// agree is a backend's agreement.
func agree(protocol string) string {
	return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol +
		"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
}

// upgradeGateway is a gateway in front of a Kubernetes backend that serves each connection with
// serve.
func upgradeGateway(t testing.TB, change func(*config.Configuration), policy string,
	serve func(net.Conn)) (g *Gateway, address string) {
	t.Helper()
	behind := serveConns(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(testutil.Patience))
		serve(c)
	})
	c, err := config.Load("", config.Flags{Upstream: "http://" + behind, Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(c)
	}
	set := policiestest.Load(t, policy)
	g = newTestGateway(t, c, func() *policies.Set { return set })
	return g, startGateway(t, g)
}

func dialTCP(t testing.TB, address string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testutil.Patience))
	return c.(*net.TCPConn), bufio.NewReader(c)
}

// readHead reads up to the empty line.
func readHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String(), err
		}
	}
}

// TestUpgrade compares both heads and the bytes on both ways with what was sent, with bytes that
// come with the heads and ends that finish one after the other.
func TestUpgrade(t *testing.T) {
	for _, protocol := range []string{"websocket", "WebSocket", "SPDY/3.1"} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			seen := make(chan string, 2)
			g, address := upgradeGateway(t, nil, "", func(c net.Conn) {
				r := bufio.NewReader(c)
				head, _ := readHead(r)
				seen <- head
				_, _ = io.WriteString(c, agree(protocol)+"early from the backend;")
				all, _ := io.ReadAll(r) // up to the client's end
				seen <- string(all)
				_, _ = fmt.Fprintf(c, "%d bytes", len(all))
			})
			c, r := dialTCP(t, address)
			body := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB right behind the head
			go func() {
				_, _ = io.WriteString(c,
					askUpgrade("GET", execPath, protocol, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
						"Sec-WebSocket-Protocol: v5.channel.k8s.io",
						"X-Stream-Protocol-Version: v4.channel.k8s.io", "Authorization: Bearer t", "Keep-Alive: 5",
						"TE: trailers", "Proxy-Connection: x")+body)
				_ = c.CloseWrite()
			}()
			head, err := readHead(r)
			if err != nil {
				t.Fatal(err)
			}
			if want := "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"; head != want {
				t.Errorf("the client got\n%q\nwant\n%q", head, want)
			}
			rest, err := io.ReadAll(r)
			if want := fmt.Sprintf("early from the backend;%d bytes", len(body)); err != nil || string(rest) != want {
				t.Errorf("the client got %q, %v; want %q", rest, err, want)
			}
			want := "GET " + execPath + " HTTP/1.1\r\nHost: gateway\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n" +
				"X-Stream-Protocol-Version: v4.channel.k8s.io\r\nAuthorization: Bearer t\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n" +
				"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gateway\r\nVia: 1.1 admission-gateway\r\n\r\n"
			if head := testutil.WithoutMadeIDs(<-seen); head != want {
				t.Errorf("the backend got\n%q\nwant\n%q", head, want)
			}
			if got := <-seen; got != body {
				t.Errorf("the backend got %d bytes, want %d", len(got), len(body))
			}
			testutil.Eventually(t, "the backend's connection to be given up", func() bool {
				open, _ := g.routes.backends[0].client.Conns()
				return open == 0
			})
		})
	}
}

// TestUpgradeAllowed checks on which paths upgrades are allowed: what else has an Upgrade line is
// answered as if it had none, and nothing that was sent behind it is served.
func TestUpgradeAllowed(t *testing.T) {
	type upgrades []string
	for _, test := range []struct {
		name     string
		allowed  upgrades // nil: the default
		request  string
		upgraded bool
	}{
		{"exec", nil, askUpgrade("GET", execPath, "websocket"), true},
		{"exec by POST", nil, askUpgrade("POST", execPath, "SPDY/3.1", "Content-Length: 0"), true},
		{"attach", nil, askUpgrade("POST", "/api/v1/namespaces/team-a/pods/web/attach", "SPDY/3.1"), true},
		{"port-forward", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/pods/web/portforward?ports=80", "websocket"),
			true},
		{"a list of options", nil, "GET " + execPath + " HTTP/1.1\r\nHost: gateway\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", true},
		{"a custom subresource", upgrades{"machines.example.com/console"},
			askUpgrade("GET", "/apis/example.com/v1/namespaces/team-a/machines/m1/console", "websocket"), true},
		{"a path", upgrades{"/live"}, askUpgrade("GET", "/live/events", "websocket"), true},
		{"a node's proxy, opted in", upgrades{"nodes/proxy"},
			askUpgrade("GET", "/api/v1/nodes/n1/proxy/x", "websocket"), true},

		{"a list", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/pods", "websocket"), false},
		{"a watch", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/pods?watch=true", "websocket"), false},
		{"a log", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/pods/web/log", "websocket"), false},
		{"a pod's proxy", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/pods/web/proxy/", "websocket"), false},
		{"a service's proxy", nil, askUpgrade("GET", "/api/v1/namespaces/team-a/services/web/proxy/", "websocket"),
			false},
		{"a node's proxy", nil, askUpgrade("GET", "/api/v1/nodes/n1/proxy/exec/team-a/web/app", "websocket"), false},
		{"exec of another group", nil, askUpgrade("GET", "/apis/example.com/v1/namespaces/team-a/pods/web/exec",
			"websocket"), false},
		{"exec, opted out", upgrades{}, askUpgrade("GET", execPath, "websocket"), false},
		{"a path that is not listed", upgrades{"/live"}, askUpgrade("GET", "/lively", "websocket"), false},
		{"a method that reads nothing on a path", upgrades{"/live"}, askUpgrade("DELETE", "/live", "websocket"), false},
		{"a custom subresource by PUT", upgrades{"machines.example.com/console"},
			askUpgrade("DELETE", "/apis/example.com/v1/namespaces/team-a/machines/m1/console", "websocket"), false},
		{"h2c", nil, askUpgrade("GET", execPath, "h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), false},
		{"HTTP2-Settings beside websocket", nil,
			askUpgrade("GET", execPath, "websocket", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), false},
		{"another protocol", nil, askUpgrade("GET", execPath, "TLS/1.0"), false},
		{"another SPDY", nil, askUpgrade("GET", execPath, "SPDY/3"), false},
		{"two protocols", nil, askUpgrade("GET", execPath, "websocket, SPDY/3.1"), false},
		{"two lines", nil, askUpgrade("GET", execPath, "websocket", "Upgrade: SPDY/3.1"), false},
		{"not in Connection", nil, "GET " + execPath + " HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\n\r\n",
			false},
		{"HTTP/1.0", nil, "GET " + execPath + " HTTP/1.0\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32
			_, address := upgradeGateway(t, func(c *config.Configuration) {
				if test.allowed != nil {
					c.Upstreams[0].Upgrades = test.allowed
				}
			}, "", func(c net.Conn) {
				r := bufio.NewReader(c)
				for {
					head, err := readHead(r)
					if err != nil {
						return
					}
					asked.Add(1)
					upgrade := strings.Contains(head, "\r\nUpgrade: ") &&
						strings.Contains(head, "\r\nConnection: Upgrade\r\n")
					if strings.Contains(head, "HTTP2-Settings") || upgrade != test.upgraded {
						t.Errorf("the backend got %q", head)
					}
					if upgrade {
						_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+
							headerOf(head, "Upgrade")+"\r\n\r\n")
						_, _ = io.Copy(c, r)
						return
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
				}
			})
			c, r := dialTCP(t, address)
			const behind = "GET /api/v1/secrets HTTP/1.1\r\nHost: gateway\r\n\r\n"
			if _, err := io.WriteString(c, test.request+behind); err != nil {
				t.Fatal(err)
			}
			_ = c.CloseWrite()
			head, err := readHead(r)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			wantLine, wantRest := "HTTP/1.1 200 OK\r\n", "{}"
			if test.upgraded {
				wantLine, wantRest = "HTTP/1.1 101 Switching Protocols\r\n", behind
			}
			if !strings.HasPrefix(head, wantLine) || string(rest) != wantRest || !test.upgraded &&
				!strings.Contains(head, "\r\nConnection: close\r\n") {
				t.Errorf("the client got\n%s%s", head, rest)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the backend got %d requests, want 1", n)
			}
		})
	}
}

func headerOf(head, name string) string {
	_, rest, _ := strings.Cut(head, "\r\n"+name+": ")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// TestUpgradeWithholdsTokens keeps the token of a browser's WebSocket from a backend to which the
// gateway names the user (ERR-2).
func TestUpgradeWithholdsTokens(t *testing.T) {
	for credentials, want := range map[config.Credentials]string{
		config.PassCredentials:        "base64url.bearer.authorization.k8s.io.dA, v5.channel.k8s.io",
		config.ImpersonateCredentials: "v5.channel.k8s.io",
	} {
		seen := make(chan string, 1)
		_, address := upgradeGateway(t, func(c *config.Configuration) {
			c.Identity = &config.Identity{Anonymous: config.AllowAnonymous}
			c.Upstreams[0].Credentials = credentials
		}, "", func(c net.Conn) {
			head, _ := readHead(bufio.NewReader(c))
			seen <- headerOf(head, "Sec-WebSocket-Protocol")
			_, _ = io.WriteString(c, agree("websocket"))
		})
		c, r := dialTCP(t, address)
		send(t, c, askUpgrade("GET", execPath, "websocket", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v5.channel.k8s.io"))
		if _, err := readHead(r); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != want {
			t.Errorf("%s: the backend got %q, want %q", credentials, got, want)
		}
	}
}
