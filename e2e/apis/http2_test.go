package apis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	h2specs "github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// certificate writes a certificate for localhost and other names, which has signed itself, and its key. It returns the
// lines of a configuration that has them.
func certificate(t testing.TB, names ...string) (lines, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: append(names, "localhost"), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	file = filepath.Join(dir, "tls.crt")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})))
	write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return fmt.Sprintf("tls: {certFile: %s/tls.crt, keyFile: %s/tls.key}\n", dir, dir), file
}

// spoken answers with what it got, and with WebSockets that say everything again, after a greeting in one segment with
// the handshake's answer.
func spoken(t testing.TB) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			greeting, _ := ws.CompileFrame(ws.NewTextFrame([]byte("greeting"))) // a text of this length is no error
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = c.Write(append([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
				"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n"), greeting...))
			defer func() { _ = c.Close() }()
			for {
				text, kind, err := wsutil.ReadClientData(c)
				if err != nil || wsutil.WriteServerMessage(c, kind,
					append([]byte(r.Header.Get("Via")+": "), text...)) != nil {
					return
				}
			}
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.Header.Get("Via"))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestH2Spec runs all tests of h2spec, the strict ones included, with TLS and without.
func TestH2Spec(t *testing.T) {
	// A server that speaks HTTP/1.1 too answers by HTTP/1.1 to what does not begin as HTTP/2. By TLS it knows better.
	known := map[bool][]string{false: {"http2/3.5/Sends invalid connection preface"}}
	for _, isTLS := range []bool{false, true} {
		lines, _ := "", ""
		if isTLS {
			lines, _ = certificate(t)
		}
		p := startGatewayWith(t, lines, spoken(t).URL)
		host, port, err := net.SplitHostPort(p.address)
		must(t, err)
		n, err := strconv.Atoi(port)
		must(t, err)
		c := &config.Config{Host: host, Port: n, Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000, Strict: true,
			TLS: isTLS, Insecure: true}
		passed := 0
		var failed []string
		for _, group := range []*spec.TestGroup{generic.Spec(), h2specs.Spec(), hpack.Spec()} {
			group.Test(c)
			passed += group.PassedCount
			failed = append(failed, failures(group)...)
		}
		if passed < 145 || !slices.Equal(failed, known[isTLS]) {
			t.Errorf("TLS %v: %d passed, failed: %q, want %q", isTLS, passed, failed, known[isTLS])
		}
	}
}

func failures(g *spec.TestGroup) (names []string) {
	for _, one := range append(slices.Clone(g.Tests), g.StrictTests...) {
		if one.Result != nil && one.Result.Failed {
			names = append(names, g.ID()+"/"+one.Desc)
		}
	}
	for _, inner := range g.Groups {
		names = append(names, failures(inner)...)
	}
	return names
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestClientsOfHTTP2: curl, nghttp, h2load, Node and Chromium speak HTTP/2 with the gateway, and WebSockets pass on a
// stream.
func TestClientsOfHTTP2(t *testing.T) {
	backend := spoken(t)
	lines, file := certificate(t)
	secure := startGatewayWith(t, lines, backend.URL)
	plain := startGatewayWith(t, "", backend.URL)
	curl, nghttp, h2load := debian(t, "curl"), debian(t, "nghttp"), debian(t, "h2load")
	for _, one := range []struct {
		command []string
		want    string
	}{
		{[]string{curl, "-s", "--cacert", file, "https://" + secure.address + "/a?b=c"},
			"GET /a?b=c 2.0 admission-gateway"},
		{[]string{curl, "-s", "--http1.1", "--cacert", file, "https://" + secure.address + "/a"},
			"GET /a 1.1 admission-gateway"},
		{[]string{curl, "-s", "--http2-prior-knowledge", "-d", "body", plain.url() + "/a"},
			"POST /a 2.0 admission-gateway"},
		// Upgrade: h2c is ignored
		{[]string{curl, "-s", "--http2", plain.url() + "/a"}, "GET /a 1.1 admission-gateway"},
		{[]string{nghttp, plain.url() + "/a"}, "GET /a 2.0 admission-gateway"},
		{[]string{nghttp, "--no-verify-peer", "https://" + secure.address + "/a"}, "GET /a 2.0 admission-gateway"},
		{[]string{h2load, "-n", "2000", "-c", "4", "-m", "32", "https://" + secure.address + "/a"}, "requests: 2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout"},
		{[]string{h2load, "-n", "2000", "-c", "4", "-m", "200", plain.url() + "/a"},
			"2000 succeeded, 0 failed, 0 errored, 0 timeout"},
		{[]string{"node", "-e", fmt.Sprintf(`const c = require('http2').connect(%q); const r = c.request({':path': '/n', ':method': 'POST'});
			r.end('x'); r.setEncoding('utf8'); r.on('data', d => process.stdout.write(d)); r.on('end', () => c.close())`, plain.url())}, "POST /n 2.0 admission-gateway"},
	} {
		out, err := exec.Command(one.command[0], one.command[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), one.want) {
			t.Errorf("%v: %s, %v", one.command, out, err)
		}
	}
	// Chromium, and a WebSocket of it, which goes on the connection that it has (RFC 8441).
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(debian(t, "chromium")),
		chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("ignore-certificate-errors", true),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if _, err := chromedp.Run(ctx, chromedp.Navigate("https://"+secure.address+"/page")); err != nil {
		t.Fatal(err)
	}
	const script = `(async () => {
		const protocol = performance.getEntriesByType('navigation')[0].nextHopProtocol;
		const text = await (await fetch('/fetched', {method: 'POST', body: 'x'})).text();
		const said = await new Promise((resolve, reject) => {
			const s = new WebSocket('wss://' + location.host + '/live');
			let greeting = '';
			s.onmessage = m => { // the server speaks first
				if (!greeting) { greeting = m.data; s.send('hello'); return }
				resolve(greeting + ', ' + m.data); s.close();
			};
			s.onerror = () => reject(new Error('the WebSocket failed'));
		});
		return JSON.stringify([protocol, text, said]);
	})()`
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	must(t, err)
	want := []string{"h2", "POST /fetched 2.0 admission-gateway", "greeting, 2.0 admission-gateway: hello"}
	var list []string
	must(t, json.Unmarshal([]byte(got), &list))
	if !slices.Equal(list, want) {
		t.Errorf("Chromium got %q, want %q", list, want)
	}
}
