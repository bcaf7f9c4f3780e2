package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// Both listeners speak TLS by files that are followed while the process runs; invalid files are
// reported, and change nothing.
func TestServeTLS(t *testing.T) {
	_, backend := startBackend(t)
	first, next := credentialstest.NewAuthority(t, "first"), credentialstest.NewAuthority(t, "next")
	dir := t.TempDir()
	first.Server(t, []string{"127.0.0.1"}).Write(t, dir, "tls")
	file := credentialstest.WriteFile(t, dir, "gateway.yaml", []byte(`
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
tls: {certFile: tls.crt, keyFile: tls.key, minVersion: VersionTLS13}
admin: {tls: {certFile: tls.crt, keyFile: tls.key}}
drainSeconds: 0
`))
	p := startUnready(t, backend, "--config", file)
	trusted := first.Pool()
	trusted.AddCert(next.Cert)
	// ask makes a connection of its own, and returns the issuer of the certificate.
	ask := func(url string) (code int, body, signed string) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: trusted}}}
		answer, err := client.Get(url)
		if err != nil {
			return 0, err.Error(), ""
		}
		defer func() { _ = answer.Body.Close() }()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, err.Error(), ""
		}
		return answer.StatusCode, string(b), answer.TLS.PeerCertificates[0].Issuer.CommonName
	}
	public, admin := "https://"+p.listen+"/v2/orders", "https://"+p.admin
	metric := func(name string, want int) bool {
		_, body, _ := ask(admin + "/metrics")
		return strings.Contains(body, fmt.Sprintf("\n%s %d\n", name, want))
	}
	testutil.Eventually(t, "ready", func() bool { code, _, _ := ask(admin + "/readyz"); return code == 200 })
	if code, body, signed := ask(public); code != 200 || signed != "first" {
		t.Fatalf("answered %d %s, signed by %s", code, body, signed)
	}
	if got := fetch("http://" + p.listen + "/v2/orders"); got.code != 400 ||
		!strings.Contains(got.body, "the client sent an HTTP request to an HTTPS server") {
		t.Errorf("plain HTTP is answered %+v", got)
	}
	if got := fetch("http://" + p.admin + "/readyz"); got.code != 400 {
		t.Errorf("plain HTTP is answered %+v by the admin listener", got)
	}
	if !metric("gateway_tls_handshake_failures_total", 1) {
		t.Error("the failed handshake is not counted")
	}

	next.Server(t, []string{"127.0.0.1"}).Write(t, dir, "tls")
	testutil.Eventually(t, "signed by another", func() bool {
		_, _, public := ask(public)
		_, _, admin := ask(admin + "/readyz")
		return public == "next" && admin == "next"
	})
	credentialstest.WriteFile(t, dir, "tls.key", []byte("no key"))
	p.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "told of",
		func() bool { return strings.Contains(p.log.String(), "new credentials cannot be used") })
	if code, _, signed := ask(public); code != 200 || signed != "next" {
		t.Errorf("answered %d, signed by %s", code, signed)
	}
	testutil.Eventually(t, "counted", func() bool {
		_, body, _ := ask(admin + "/metrics")
		return !strings.Contains(body, "\ngateway_credentials_reload_failure_total 0\n")
	})
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
}

// Files with credentials that cannot be used end the start, with the exit code of a wrong configuration.
func TestBadCredentials(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	text := credentialstest.WriteFile(t, dir, "text", []byte("none"))
	for _, c := range []struct{ lines, want string }{
		{"tls: {certFile: none, keyFile: none}\n", "tls: the file '" + none +
			"' may not be read: no such file or directory\n"},
		{"admin: {tls: {certFile: text, keyFile: text}}\n", "admin.tls: the certificate in '" + text +
			"' and the key in '" + text + "' cannot be used: tls: failed to find any PEM data in certificate input\n"},
		{"upstreams: [{name: a, endpoints: [https://a], tls: {caFile: text}}]\n", "upstream 'a': the authorities in '" +
			text + "' cannot be used: must hold at least one certificate in PEM\n"},
	} {
		file := credentialstest.WriteFile(t, dir, "gateway.yaml",
			[]byte("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+c.lines))
		args := []string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
		if !strings.HasPrefix(c.lines, "upstreams") {
			args = append(args, "--upstream", "http://127.0.0.1:9")
		}
		got := run(args...)
		if lines := strings.SplitAfter(got.stderr, "\n"); got.code != 2 || len(lines) < 2 ||
			lines[len(lines)-2] != "gateway serve: "+c.want {
			t.Errorf("%+v, want\n%s", got, c.want)
		}
	}
}
