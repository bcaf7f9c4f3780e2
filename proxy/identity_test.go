package proxy

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// headerIdentity believes the headers X-Remote-* of proxies on this machine.
func headerIdentity(anonymous config.Anonymous) *config.Identity {
	return &config.Identity{
		Anonymous: anonymous,
		Authenticators: []config.Authenticator{
			{RequestHeader: &config.RequestHeader{
				Addresses: []config.Prefix{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}},
		},
	}
}

// cluster is a Kubernetes API server that knows some tokens, and answers with the user that it was
// given.
type cluster struct {
	*httptest.Server
	reviews atomic.Int64
	down    atomic.Bool
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != tokenReviewTarget {
		told := []string{}
		for name, values := range r.Header {
			if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "Impersonate-") ||
				name == "Authorization" || strings.Contains(name, "_") {
				for _, v := range values {
					told = append(told, name+"="+v)
				}
			}
		}
		slices.Sort(told)
		_ = json.NewEncoder(w).Encode(map[string]any{"told": told})
		return
	}
	c.reviews.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil || c.down.Load() || r.Header.Get("Authorization") != "Bearer gateways-own" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusCreated)
	if strings.Contains(string(body), `"token":"of-builder"`) {
		_, _ = io.WriteString(w, `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"builder","groups":["bots"]}}}`)
		return
	}
	_, _ = io.WriteString(w, `{"kind":"TokenReview","status":{"authenticated":false}}`)
}

// startConfigured starts a gateway with a configuration file, whose %s are filled in.
func startConfigured(t testing.TB, content string, values ...any) string {
	t.Helper()
	content = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n" +
		fmt.Sprintf(content, values...)
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), content)
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	set := policiestest.LoadFiles(t, filepath.Join("testdata", "policies", "widgets.yaml"))
	return startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
}

// asked has the answer to a request: its code, and the headers that the backend got, or the message of a refusal.
type asked struct {
	code      int
	told      string
	challenge string
	after     string
}

func askWho(t testing.TB, client *http.Client, url string, header ...string) asked {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url+"/apis/example.com/v1/namespaces/team-a/widgets/w1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Told    []string
		Message string
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return asked{answer.StatusCode, strings.Join(body.Told, " ") + body.Message, answer.Header.Get("WWW-Authenticate"),
		answer.Header.Get("Retry-After")}
}

// secretFile writes a file with content and returns its name.
func secretFile(t testing.TB, content string) string {
	t.Helper()
	return credentialstest.WriteFile(t, t.TempDir(), "secret", []byte(content))
}

// TestIdentity asks with all kinds of credentials, good and bad, by TLS, and checks the user that
// the backend gets.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	servers, clients, proxies, others := credentialstest.NewAuthority(t, "servers"),
		credentialstest.NewAuthority(t, "clients"),
		credentialstest.NewAuthority(t, "proxies"), credentialstest.NewAuthority(t, "others")
	cert, key := servers.Server(t, []string{"127.0.0.1"}).Write(t, dir, "tls")
	issuer, backend := identitytest.NewIssuer(t), newCluster(t)
	address := startConfigured(t, `
listen: 127.0.0.1:0
underscoreHeaders: Pass
tls: {certFile: %s, keyFile: %s, clientCAFile: %s}
upstreams: [{name: cluster, endpoints: [%s], dialect: Kubernetes, tokenFile: %s, credentials: FrontProxy}]
identity:
  authenticators:
  - requestHeader: {caFile: %s, clientNames: [front-proxy]}
  - clientCertificate: {}
  - jwt:
      issuer: {url: %s, audiences: [gateway], certificateAuthority: %q}
      claimMappings:
        username: {expression: "'oidc:' + claims.sub"}
        groups: {claim: groups, prefix: "oidc:"}
  - tokenReview: {upstream: cluster}
`, cert, key, credentialstest.WriteFile(t, dir, "clients.crt", clients.PEM), backend.URL, secretFile(t, "gateways-own"),
		credentialstest.WriteFile(t, dir, "proxies.crt", proxies.PEM), issuer.URL, issuer.CA)
	as := func(pairs ...credentialstest.Pair) *http.Client {
		c := &tls.Config{RootCAs: servers.Pool()}
		for _, p := range pairs {
			pair := p.TLS(t)
			// Whatever the server says it accepts.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		transport := &http.Transport{TLSClientConfig: c}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 30 * time.Second}
	}
	claims := map[string]any{"sub": "lee", "groups": []string{"a", "b"}}
	token := issuer.Token(claims)
	// The issuer is looked up in the background.
	testutil.Eventually(t, "the issuer is found", func() bool {
		return askWho(t, as(), "https://"+address, "Authorization: Bearer "+token).code != 503
	})
	const invalid, missing = `Bearer realm="admission-gateway", error="invalid_token"`,
		`Bearer realm="admission-gateway"`
	const lee = "X-Remote-Group=oidc:a X-Remote-Group=oidc:b X-Remote-Group=system:authenticated X-Remote-User=oidc:lee"
	const builder = "X-Remote-Group=bots X-Remote-Group=system:authenticated X-Remote-User=builder"
	kim := clients.Client(t, "kim", []string{"admins"})
	isKim := func(told string) bool {
		return strings.HasPrefix(told, "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id=X509SHA256=") &&
			strings.HasSuffix(told, " X-Remote-Group=admins X-Remote-Group=system:authenticated X-Remote-User=kim")
	}
	for _, tt := range []struct {
		name   string
		client *http.Client
		header []string
		want   asked // told is not compared for kim
		kim    bool
	}{
		{name: "nothing", client: as(),
			want: asked{401, "the request has no credentials, and anonymous requests are not allowed", missing, ""}},
		{name: "a scheme that nobody knows", client: as(), header: []string{"Authorization: Basic a2ltOmtpbQ=="},
			want: asked{401, "the request has no credentials, and anonymous requests are not allowed", missing, ""}},
		{name: "a client certificate", client: as(kim), want: asked{code: 200}, kim: true},
		{name: "a client certificate and a token", client: as(kim), header: []string{"Authorization: Bearer " + token},
			want: asked{code: 200}, kim: true},
		{name: "a certificate that nobody signed", client: as(others.Client(t, "kim", nil)),
			want: asked{401, "the client certificate is not valid", missing, ""}},
		{name: "a certificate that expired", client: as(clients.Client(t, "kim", nil, credentialstest.Expired)),
			want: asked{401, "the client certificate is not valid", missing, ""}},
		{name: "a certificate that nobody signed and a token", client: as(others.Client(t, "kim", nil)),
			header: []string{"Authorization: Bearer " + token}, want: asked{code: 200, told: lee}},
		{name: "a JWT", client: as(), header: []string{"Authorization: Bearer " + token},
			want: asked{code: 200, told: lee}},
		{name: "a JWT, and headers of a client", client: as(), header: []string{
			"Authorization: bearer " + token, "X-Remote-User: admin", "x-remote-group: system:masters",
			"X_Remote_Group: system:masters", "X-Remote-Extra-a: b",
		}, want: asked{code: 200, told: lee}},
		{name: "a JWT, and headers of a client that end at the gateway", client: as(), header: []string{
			"Authorization: Bearer " + token, "Connection: X-Remote-User, X-Remote-Group", "X-Remote-User: admin",
			"X-Remote-Group: system:masters",
		}, want: asked{code: 200, told: lee}},
		{name: "a client certificate, and headers of a client", client: as(kim),
			header: []string{"X-Remote-User: admin", "X-Remote-Group: system:masters"}, want: asked{code: 200},
			kim: true},
		{name: "a forged JWT", client: as(), header: []string{"Authorization: Bearer " + issuer.Forged(t, "0", claims)},
			want: asked{401, "the bearer token is not valid", invalid, ""}},
		{name: "an expired JWT", client: as(),
			header: []string{"Authorization: Bearer " + issuer.Token(map[string]any{"sub": "lee", "exp": 1})},
			want:   asked{401, "the bearer token is not valid", invalid, ""}},
		{name: "a token that the API server knows", client: as(), header: []string{"Authorization: Bearer of-builder"},
			want: asked{code: 200, told: builder}},
		{name: "a token that nobody knows", client: as(), header: []string{"Authorization: Bearer of-nobody"},
			want: asked{401, "the bearer token is not valid", invalid, ""}},
		{name: "headers of a proxy", client: as(proxies.Client(t, "front-proxy", nil)),
			header: []string{"X-Remote-User: max", "X-Remote-Group: a"},
			want:   asked{code: 200, told: "X-Remote-Group=a X-Remote-Group=system:authenticated X-Remote-User=max"}},
		{name: "headers of a proxy, which passes on what its client wants to shed",
			client: as(proxies.Client(t, "front-proxy", nil)), header: []string{
				"X-Remote-User: max", "X-Remote-Group: a", "Connection: x-remote-group",
			}, want: asked{400, "the header 'Connection' must not name headers 'X-Remote-…': the proxy would not tell all of the user", "", ""}},
		{name: "headers of a proxy behind the client's own", client: as(proxies.Client(t, "front-proxy", nil)),
			header: []string{
				"X-Remote-User: admin", "X-Remote-User: max",
			}, want: asked{400, "the request has the header 'X-Remote-User' more than once", "", ""}},
		{name: "headers of a proxy with another name", client: as(proxies.Client(t, "proxy", nil)),
			header: []string{"X-Remote-User: max"}, want: asked{401, "the client certificate is not valid", missing,
				""}},
		{name: "headers of a client with the name of a proxy", client: as(clients.Client(t, "front-proxy", nil)),
			header: []string{"X-Remote-User: max"}, want: asked{code: 200}},
		{name: "to act as somebody else", client: as(kim), header: []string{"Impersonate-User: admin"}, want: asked{400, "the request has the header 'Impersonate-User': clients may not impersonate through this gateway", "", ""}},
		{name: "a user whom no header can carry", client: as(),
			header: []string{"Authorization: Bearer " +
				issuer.Token(map[string]any{"sub": "lee\r\nX-Remote-Group: system:masters"})}, want: asked{
				403, `widgets.example.com "w1" is forbidden: the user has a name with characters that no header can carry, so that the backend cannot be told who asks`, "", "",
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // on one connection
				got := askWho(t, tt.client, "https://"+address, tt.header...)
				if tt.kim && !isKim(got.told) || strings.Contains(got.told, "X-Remote-User=max") &&
					!strings.Contains(tt.want.told, "max") {
					t.Errorf("the backend was told %s", got.told)
				}
				if tt.want.told == "" {
					got.told = ""
				}
				if got != tt.want {
					t.Errorf("got\n%+v\nwant\n%+v", got, tt.want)
				}
			}
		})
	}
}

// TestTokensOfStrangers sends tokens that are not valid, and valid ones while no server can review
// them.
func TestTokensOfStrangers(t *testing.T) {
	backend := newCluster(t)
	address := startConfigured(t, `
listen: 127.0.0.1:0
upstreams: [{name: cluster, endpoints: [%s], dialect: Kubernetes, tokenFile: %s}]
identity:
  authenticators: [{tokenReview: {upstream: cluster}}]
  anonymous: Allow
  tokens: {failuresPerMinute: 1, failureBurst: 3}
`, backend.URL, secretFile(t, "gateways-own"))
	client := &http.Client{Timeout: 30 * time.Second}
	if got, want := askWho(t, client, "http://"+address, "Authorization: Bearer of-builder"),
		(asked{code: 200, told: "Authorization=Bearer of-builder"}); got != want {
		t.Errorf("got %+v", got)
	}
	backend.down.Store(true)
	if got, want := askWho(t, client, "http://"+address, "Authorization: Bearer of-builder"),
		(asked{code: 200, told: "Authorization=Bearer of-builder"}); got != want {
		t.Errorf("a token that is remembered: %+v", got)
	}
	if got, want := askWho(t, client, "http://"+address, "Authorization: Bearer other"),
		(asked{503, "the gateway cannot tell now whose the bearer token is", "", "1"}); got != want {
		t.Errorf("nobody can tell: %+v", got)
	}
	if got, want := askWho(t, client, "http://"+address), (asked{code: 200}); got != want {
		t.Errorf("no token: %+v", got)
	}
	backend.down.Store(false)
	before := backend.reviews.Load()
	refused := asked{}
	for i := range 20 {
		refused = askWho(t, client, "http://"+address, fmt.Sprintf("Authorization: Bearer made-up-%d", i))
	}
	if reviews := backend.reviews.Load() - before; reviews != 3 {
		t.Errorf("the API server was asked %d times", reviews)
	}
	if want := (asked{429, "the client's address sent too many bearer tokens that are not valid: try again after 60 seconds", "", "60"}); refused != want {
		t.Errorf("got %+v", refused)
	}
	if got := askWho(t, client, "http://"+address, "Authorization: Bearer of-builder"); got.code != 200 {
		t.Errorf("a token that is remembered: %+v", got)
	}
}

// TestNoAccountToImpersonate: no request passes while the gateway has no account of its own.
func TestNoAccountToImpersonate(t *testing.T) {
	backend := newCluster(t)
	file := secretFile(t, "gateways-own")
	address := startConfigured(t, `
listen: 127.0.0.1:0
upstreams: [{name: cluster, endpoints: [%s], dialect: Kubernetes, tokenFile: %s, credentials: Impersonate}]
identity: {authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}
trustedProxies: [127.0.0.1]
`, backend.URL, file)
	client := &http.Client{Timeout: 30 * time.Second}
	got := askWho(t, client, "http://"+address, "X-Remote-User: kim", "Authorization: Bearer of-the-proxy")
	if want := (asked{code: 200, told: "Authorization=Bearer gateways-own Impersonate-Group=system:authenticated Impersonate-User=kim"}); got != want {
		t.Errorf("got %+v", got)
	}
	got = askWho(t, client, "http://"+address, "X-Remote-User: kim", "Impersonate-User: admin")
	if want := (asked{400, errMayNotImpersonate.Error(), "", ""}); got != want {
		t.Errorf("got %+v", got)
	}
}
