package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// A demo is a gateway before backends of the test's own, under a load in which everything happens that the dashboard
// shows.
type demo struct {
	url, admin string
	certs      string // the folder with tls.crt and tls.key
	client     *http.Client
}

// startDemo starts the gateway, Redis and the load, until the test ends.
func startDemo(t *testing.T) *demo {
	t.Helper()
	redis, dir := debian(t, "redis-server"), t.TempDir()
	listen, store := testutil.FreeAddress(t), testutil.FreeAddress(t)
	d := &demo{url: "https://" + listen, admin: testutil.FreeAddress(t), certs: filepath.Join(dir)}
	//nolint:gosec // a test's own certificate
	d.client = &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	host, port, err := net.SplitHostPort(store)
	if err != nil {
		t.Fatal(err)
	}
	start(t, accepts(store), filepath.Join(dir, "redis.log"), redis, "--bind", host, "--port", port, "--save", "",
		"--dir", dir)
	writeCertificate(t, dir)
	write(t, filepath.Join(dir, "audit.kubeconfig"), "clusters: [{name: away, cluster: {server: \"http://"+
		testutil.FreeAddress(t)+"\"}}]\n"+
		"contexts: [{name: away, context: {cluster: away}}]\ncurrent-context: away\n")
	policies, err := filepath.Abs("testdata/demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "team-a"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "team-a", "policies.yaml"), "kind: [") // of an owner, and never good
	write(t, filepath.Join(dir, "gateway.yaml"), fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: %s
tls: {certFile: tls.crt, keyFile: tls.key}
admin: {listen: %s}
upstreams:
- {name: orders, endpoints: [%s], dialect: Plain}
- {name: away, endpoints: ["http://%s"], dialect: Plain, connectTimeoutSeconds: 1}
- {name: cluster, endpoints: [%s], dialect: Kubernetes}
routes:
- {pathPrefix: /, upstream: orders}
- {pathPrefix: /away, upstream: away}
- {name: held, pathPrefix: /held, upstream: orders}
policies: {paths: ["%s", {path: team-a, owner: team-a, concerns: {routes: [held]}}]}
identity: {authenticators: [{tokenReview: {upstream: cluster}}], anonymous: Allow}
redis: {addresses: ["%s"]}
bundles: [{name: team, file: team.tar.gz}]
telemetry:
  audit: {webhook: {kubeconfig: audit.kubeconfig}}
  decisionLogs: {service: {url: "%s", minDelaySeconds: 1, maxDelaySeconds: 1}}
`, listen, d.admin, startOrders(t), testutil.FreeAddress(t), startReviews(t), policies, store, startRefusing(t)))
	writeBundle(t, filepath.Join(dir, "team.tar.gz"), "package orders\n\ndeny contains \"at most 5\" if input.review.object.quantity > 5\n")
	t.Setenv("GOMEMLIMIT", "400MiB")
	start(t, answers("http://"+d.admin+"/readyz"), filepath.Join(dir, "gateway.log"), gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"))
	d.load(t)
	return d
}

// startOrders serves an ordinary API that stores nothing.
func startOrders(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.Copy(w, r.Body)
		case r.URL.Path == "/stock":
			_, _ = io.WriteString(w, `{"items":[{"id":"tea"}]}`)
		case r.URL.Path == "/orders":
			_, _ = io.WriteString(w, `{"items":[]}`)
		default:
			_, _ = io.WriteString(w, `{"id":"a"}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// startReviews serves the one question of an API server that the gateway asks about tokens: none is valid.
func startReviews(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost && r.URL.Path == "/apis/authentication.k8s.io/v1/tokenreviews" {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false,"error":"the token has expired"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// startRefusing serves a service of decision logs that takes none.
func startRefusing(t *testing.T) string {
	s := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(s.Close)
	return s.URL
}

// writeBundle writes a bundle of one module.
func writeBundle(t *testing.T, path, module string) {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	files := tar.NewWriter(compressed)
	err := files.WriteHeader(&tar.Header{Name: "orders.rego", Mode: 0o600, Size: int64(len(module))})
	if err == nil {
		_, err = io.WriteString(files, module)
	}
	if err := errors.Join(err, files.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String())
}

// load sends requests of all kinds, again and again until the test ends.
func (d *demo) load(t *testing.T) {
	type request struct{ method, path, body, token string }
	kinds := []request{
		{"POST", "/orders", `{"id":"a","price":1}`, ""},
		{"POST", "/orders", `{"id":"a","price":-1}`, ""},
		{"POST", "/orders", `{"id":"a","price":500}`, ""},
		{"POST", "/orders", `{"id":"a","code":"none"}`, ""},
		{"POST", "/orders", `{"id":"a","quantity":9}`, ""},
		{"POST", "/orders", `{"id":"a","quantity":"many"}`, ""},
		{"POST", "/orders", `{"id":"a","discount":"half"}`, ""},
		{"GET", "/orders", "", ""},
		{"GET", "/orders/a", "", ""},
		{"GET", "/elsewhere", "", ""},
		{"GET", "/away", "", ""},
		{"GET", "/held", "", ""},
		{"GET", "/orders/a", "", "of-nobody"},
	}
	var wg sync.WaitGroup
	ctx := t.Context()
	for _, k := range kinds {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r, err := http.NewRequestWithContext(ctx, k.method, d.url+k.path, strings.NewReader(k.body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if k.token != "" {
					r.Header.Set("Authorization", fmt.Sprintf("Bearer %s-%d", k.token, n))
				}
				if answer, err := d.client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				select { // few requests a second, because they need not be many
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(wg.Wait)
}

// disturb lets a handshake fail, and gives the gateway a new certificate and then a file that is none.
func (d *demo) disturb(t *testing.T) {
	t.Helper()
	address := strings.TrimPrefix(d.url, "https://")
	if c, err := tls.Dial("tcp", address,
		&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS10}); err == nil {
		//nolint:gosec // refused on purpose
		_ = c.Close()
		t.Error("the gateway speaks TLS 1.0")
	}
	writeCertificate(t, d.certs)
	write(t, filepath.Join(d.certs, "tls.crt"), "none\n")
}

// writeCertificate writes tls.crt and tls.key, of a new key.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}
