package apis

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

// forwarding answers with who the client is.
func forwarding(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s by %s", r.URL.Path, r.Header.Get("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestClientsOfListeners: curl and openssl are redirected, see the certificates and the names of listeners, and do not
// get to one by a connection of another.
func TestClientsOfListeners(t *testing.T) {
	curl, openssl := debian(t, "curl"), debian(t, "openssl")
	plain, secure := testutil.FreeAddress(t), testutil.FreeAddress(t)
	port := func(address string) string {
		_, p, _ := net.SplitHostPort(address)
		return p
	}
	open, openFile := certificate(t, "open.test")
	safe, safeFile := certificate(t, "safe.test")
	clientCA := strings.Replace(strings.TrimSpace(safe), "}", ", clientCAFile: "+safeFile+
		", clientCertificates: Require}", 1)
	startGatewayWith(t, "listeners:\n"+
		"- {name: plain, listen: '"+plain+"', redirectToHTTPS: {port: "+port(secure)+"}}\n"+
		"- {name: open, listen: '"+secure+"', hosts: [open.test], hsts: {}, "+strings.TrimSpace(open)+"}\n"+
		"- {name: safe, listen: '"+secure+"', hosts: [safe.test], "+clientCA+"}\n", forwarding(t).URL)
	at := func(host, address string) []string {
		return []string{"--resolve", host + ":" + port(address) + ":127.0.0.1"}
	}
	url := func(scheme, host, address string) string { return scheme + "://" + host + ":" + port(address) + "/a" }
	key := strings.TrimSuffix(safeFile, ".crt") + ".key"
	for _, c := range []struct {
		name    string
		command []string
		want    []string
	}{
		{"a redirect is followed",
			append(append([]string{curl, "-siL", "--cacert", openFile},
				append(at("open.test", plain), at("open.test", secure)...)...), url("http", "open.test", plain)),
			[]string{"HTTP/1.1 308 Permanent Redirect", "https://open.test:" + port(secure) + "/a", "HTTP/2 200",
				"strict-transport-security: max-age=31536000", "/a for 127.0.0.1 by https"}},
		{"not the path of ACME", append(append([]string{curl, "-si"}, at("open.test", plain)...), "http://open.test:"+
			port(plain)+"/.well-known/acme-challenge/x"),
			[]string{"HTTP/1.1 200", "/.well-known/acme-challenge/x for"}},
		{"another's host by HTTP/2",
			append(append([]string{curl, "-si", "--cacert", openFile, "-H", "Host: safe.test"},
				at("open.test", secure)...), url("https", "open.test", secure)),
			[]string{"HTTP/2 421", "not served on this connection", "strict-transport-security: max-age=31536000"}},
		{"another's host by HTTP/1.1",
			append(append([]string{curl, "-si", "--http1.1", "--cacert", openFile, "-H", "Host: safe.test"},
				at("open.test", secure)...), url("https", "open.test", secure)),
			[]string{"HTTP/1.1 421 Misdirected Request"}},
		{"without a certificate",
			append(append([]string{curl, "-sS", "--cacert", safeFile}, at("safe.test", secure)...),
				url("https", "safe.test", secure)),
			[]string{"curl: ("}}, // whatever of the end it sees first
		{"with a certificate",
			append(append([]string{curl, "-si", "--cacert", safeFile, "--cert", safeFile, "--key", key},
				at("safe.test", secure)...), url("https", "safe.test", secure)),
			[]string{"HTTP/2 200", "/a for 127.0.0.1 by https"}},
		{"a name of a listener", []string{openssl, "s_client", "-connect", secure, "-servername", "open.test",
			"-verify_hostname", "open.test", "-CAfile", openFile, "-brief"},
			[]string{"Verification: OK", "Verified peername: open.test"}},
		{"a name of no listener", []string{openssl, "s_client", "-connect", secure, "-servername", "other.test",
			"-brief"},
			[]string{"unrecognized name"}},
	} {
		out, _ := exec.Command(c.command[0], c.command[1:]...).CombinedOutput()
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %s\nhas no %q", c.name, out, want)
			}
		}
	}
}

// TestSendersOfProxyProtocol: haproxy and nginx name their clients by both versions of the PROXY protocol, before plain
// HTTP and TLS.
func TestSendersOfProxyProtocol(t *testing.T) {
	curl := debian(t, "curl")
	if _, err := os.Stat(programs.StreamModule); err != nil {
		need(t, fmt.Errorf("nginx cannot pass bytes of TCP (Debian's package libnginx-mod-stream): %w", err))
	}
	plain, secure := testutil.FreeAddress(t), testutil.FreeAddress(t)
	lines, file := certificate(t, "open.test")
	gateway := startGatewayWith(t, "listeners:\n"+
		"- {name: plain, listen: '"+plain+"', proxyProtocol: {from: [127.0.0.1]}}\n"+
		"- {name: secure, listen: '"+secure+"', proxyProtocol: {from: [127.0.0.1]}, "+strings.TrimSpace(lines)+"}\n",
		forwarding(t).URL)
	haproxy := func(to, how string) *program {
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		return start(t, "", func(address string) *exec.Cmd {
			write(t, file, "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"+
				"listen l\n  bind "+address+"\n  server s "+to+" "+how+"\n")
			return exec.Command(debian(t, "haproxy"), "-f", file)
		})
	}
	nginx := func(to string) *program {
		dir, program := t.TempDir(), debian(t, "nginx")
		return start(t, "", func(address string) *exec.Cmd {
			write(t, filepath.Join(dir, "nginx.conf"), "load_module "+programs.StreamModule+
				";\ndaemon off;\nmaster_process off;\n"+
				"pid "+dir+"/pid;\nerror_log stderr;\nevents {}\nstream { server { listen "+address+"; proxy_pass "+to+
				"; proxy_protocol on; } }\n")
			return exec.Command(program, "-c", filepath.Join(dir, "nginx.conf"))
		})
	}
	for name, by := range map[string]func(to string) *program{
		"haproxy, version 1": func(to string) *program { return haproxy(to, "send-proxy") },
		"haproxy, version 2": func(to string) *program {
			return haproxy(to, "send-proxy-v2 proxy-v2-options unique-id,crc32c")
		},
		"nginx": nginx,
	} {
		for _, scheme := range []string{"http", "https"} {
			to := map[string]string{"http": plain, "https": secure}[scheme]
			_, port, _ := net.SplitHostPort(by(to).address)
			out, err := exec.Command(curl, "-sS", "--interface", "127.0.0.2", "--cacert", file, "--resolve",
				"open.test:"+port+":127.0.0.1", scheme+"://open.test:"+port+"/a").CombinedOutput()
			if want := "/a for 127.0.0.2 by " + scheme; err != nil || string(out) != want {
				t.Errorf("%s, %s: %s, %v; want %s", name, scheme, out, err, want)
			}
		}
	}
	// A balancer that names no client, and a client that names another.
	out, _ := exec.Command(curl, "-sS", "http://"+plain+"/a").CombinedOutput()
	if !strings.Contains(string(out), "Empty reply") && !strings.Contains(string(out), "reset by peer") {
		t.Errorf("without a header: %s", out)
	}
	out, err := exec.Command(curl, "-sS", "--haproxy-protocol", "--interface", "127.0.0.3", "-o",
		filepath.Join(t.TempDir(), "body"), "-w", "%{http_code}", "http://"+plain+"/a").CombinedOutput()
	if string(out) != "400" {
		t.Errorf("of another peer: %s, %v", out, err)
	}
	if !strings.Contains(gateway.log.String(), "a peer did not begin its connection by the PROXY protocol") {
		t.Errorf("the log has no line about it:\n%s", gateway.log)
	}
}

// TestCoalescingBrowser: Chromium uses the connection that it has for another host of the same certificate. It gets
// 421, and asks again on a connection of its own.
func TestCoalescingBrowser(t *testing.T) {
	chromium, certutil := debian(t, "chromium"), debian(t, "certutil")
	lines, file := certificate(t, "a.shop.test", "b.shop.test")
	secure, home := testutil.FreeAddress(t), t.TempDir()
	gateway := startGatewayWith(t, "telemetry: {log: {requests: All}}\nlisteners:\n"+
		"- {name: open, listen: '"+secure+"', hosts: [a.shop.test], "+strings.TrimSpace(lines)+"}\n"+
		"- {name: other, listen: '"+secure+"', hosts: [b.shop.test], "+strings.TrimSpace(lines)+"}\n", spoken(t).URL)
	database := filepath.Join(home, ".pki", "nssdb")
	must(t, os.MkdirAll(database, 0o700))
	for _, args := range [][]string{{"-N", "--empty-password"}, {"-A", "-t", "CP,,", "-n", "gateway", "-i", file}} {
		if out, err := exec.Command(certutil,
			append([]string{"-d", "sql:" + database}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("certutil: %s, %v", out, err)
		}
	}
	_, port, _ := net.SplitHostPort(secure)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium),
		chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"),
		chromedp.Env("HOME="+home), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if _, err := chromedp.Run(ctx, chromedp.Navigate("https://a.shop.test:"+port+"/page")); err != nil {
		t.Fatal(err)
	}
	// Requests without credentials have connections of their own.
	script := "(async () => (await fetch('https://b.shop.test:" + port +
		"/fetched', {mode: 'no-cors', credentials: 'include'})).type)()"
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	must(t, err)
	if got != "opaque" {
		t.Errorf("the answer is of the type %q", got)
	}
	var codes []string
	for line := range strings.Lines(gateway.log.String()) {
		if strings.Contains(line, "server.address=b.shop.test") {
			_, code, _ := strings.Cut(line, "http.response.status_code=")
			codes = append(codes, code[:3])
		}
	}
	if !slices.Equal(codes, []string{"421", "200"}) {
		t.Errorf("the answers for the other host are %q:\n%s", codes, gateway.log)
	}
}
