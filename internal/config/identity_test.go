package config

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const wholeIdentity = head + `
tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}
upstreams:
- {name: cluster, endpoints: [https://kubernetes.default.svc], dialect: Kubernetes, credentials: Impersonate, tokenFile: token}
- {name: orders, endpoints: [http://127.0.0.1:9000], dialect: Plain, credentials: FrontProxy}
- {name: files, endpoints: [http://127.0.0.1:9001], dialect: Plain}
routes: [{upstream: cluster}]
identity:
  authenticators:
  - clientCertificate: {}
  - jwt:
      issuer: {url: https://accounts.example.com, audiences: [gateway]}
      claimMappings:
        username: {claim: sub, prefix: "oidc:"}
        groups: {expression: "claims.teams"}
      claimValidationRules: [{expression: "claims.hd == 'example.com'", message: must be of the house}]
      userValidationRules: [{expression: "!user.username.startsWith('system:')", message: must not be reserved}]
  - jwt:
      issuer: {url: https://login.example.com/tenant, discoveryURL: https://login.internal/.well-known/openid-configuration, audiences: [a, b], audienceMatchPolicy: MatchAny}
      claimMappings: {username: {claim: sub, prefix: ""}}
  - tokenReview: {upstream: cluster, audiences: [gateway]}
  - requestHeader: {caFile: proxies.crt, clientNames: [front-proxy], addresses: [10.0.0.0/8]}
  anonymous: Allow
  tokens: {cacheSeconds: 300, failuresPerMinute: 10}
`

func TestIdentity(t *testing.T) {
	c, problem, dir := load(t, wholeIdentity, Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	i := c.Identity
	if len(i.Authenticators) != 5 || i.Authenticators[0].ClientCertificate == nil || i.Anonymous != AllowAnonymous {
		t.Fatalf("got %+v", i)
	}
	if want := (Tokens{CacheEntries: 8192, CacheSeconds: 300, ReviewCacheSeconds: 10, FailureCacheSeconds: 5,
		FailuresPerMinute: 10, FailureBurst: 20}); i.Tokens != want {
		t.Errorf("tokens are %+v", i.Tokens)
	}
	issuer, err := i.Authenticators[2].JWT.Internal()
	if err != nil || issuer.Issuer.URL != "https://login.example.com/tenant" ||
		issuer.Issuer.DiscoveryURL != "https://login.internal/.well-known/openid-configuration" ||
		*issuer.ClaimMappings.Username.Prefix != "" {
		t.Errorf("got %+v, %v", issuer, err)
	}
	if want := (&TokenReview{Upstream: "cluster", Audiences: []string{"gateway"}}); !reflect.DeepEqual(
		i.Authenticators[3].TokenReview, want) {
		t.Errorf("got %+v", i.Authenticators[3].TokenReview)
	}
	want := &RequestHeader{CAFile: filepath.Join(dir, "proxies.crt"), ClientNames: []string{"front-proxy"},
		Addresses: []Prefix{{netip.MustParsePrefix("10.0.0.0/8")}}}
	if got := i.Authenticators[4].RequestHeader; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	for at, want := range []Credentials{ImpersonateCredentials, FrontProxyCredentials, PassCredentials} {
		if got := c.Upstreams[at].Credentials; got != want {
			t.Errorf("upstream %d: %s", at, got)
		}
	}
	c, problem, _ = load(t, head+"upstreams: [{name: a, endpoints: [http://a]}]\nidentity: {authenticators: [{requestHeader: {addresses: [10.1.2.3]}}]}\n", Flags{})
	if problem != "" || c.Identity.Anonymous != DenyAnonymous || c.Identity.Tokens != defaultIdentity().Tokens {
		t.Errorf("got %+v, %s", c, problem)
	}
}

func TestIdentityProblems(t *testing.T) {
	const some = "upstreams: [{name: a, endpoints: [http://a]}, {name: p, endpoints: [http://p], dialect: Plain}]\nroutes: [{upstream: a}]\n"
	jwt := func(inner string) string {
		return some + "identity:\n  authenticators:\n  - jwt:\n      issuer: {url: https://i, audiences: [g]}\n" + inner
	}
	const name = "      claimMappings: {username: {claim: sub, prefix: \"\"}}\n"
	for _, tt := range []struct{ name, content, want string }{
		{"nothing", some + "identity: {}\n", "gateway.yaml:5: identity.authenticators: Required value: must have at least one item, unless `anonymous` is 'Allow': then everybody is 'system:anonymous'"},
		{"values", some + "identity: {anonymous: Maybe, authenticators: [{requestHeader: {addresses: [10.0.0.1]}}], tokens: {cacheSeconds: 0, cacheEntries: -1, failureBurst: 70000}}\n",
			"gateway.yaml:5: identity.anonymous: must be 'Deny' or 'Allow', not 'Maybe'\n" +
				"gateway.yaml:5: identity.tokens.cacheEntries: must be between 1 and 1048576, inclusive, not -1\n" +
				"gateway.yaml:5: identity.tokens.cacheSeconds: must be between 1 and 3600, inclusive, not 0\n" +
				"gateway.yaml:5: identity.tokens.failureBurst: must be between 1 and 60000, inclusive, not 70000"},
		{"no kind, two kinds, another kind", some + "identity:\n  authenticators:\n  - {}\n  - {clientCertificate: {}, tokenReview: {upstream: a}}\n",
			"gateway.yaml:7: identity.authenticators[0]: must have exactly one of `clientCertificate`, `jwt`, `tokenReview` and `requestHeader`\n" +
				"gateway.yaml:8: identity.authenticators[1]: must have exactly one of `clientCertificate`, `jwt`, `tokenReview` and `requestHeader`"},
		{"an unknown kind", some + "identity:\n  authenticators:\n  - {basic: {}}\n",
			"gateway.yaml:7: identity.authenticators[0].basic: unknown field"},
		{"certificates without TLS", some + "identity:\n  authenticators:\n  - {clientCertificate: {}}\n  - {requestHeader: {caFile: a}}\n  - {requestHeader: {clientNames: [a]}}\n  - {requestHeader: {}}\n",
			"gateway.yaml:7: identity.authenticators[0].clientCertificate: must not be set without `tls.clientCAFile`, which names the authorities\n" +
				"gateway.yaml:8: identity.authenticators[1].requestHeader.caFile: must not be set where `tls` does not ask clients for certificates\n" +
				"gateway.yaml:9: identity.authenticators[2].requestHeader.clientNames: must not be set without `caFile` here or `tls.clientCAFile`, which name the authorities\n" +
				"gateway.yaml:10: identity.authenticators[3].requestHeader: must name the proxies by `caFile`, `clientNames` or `addresses`"},
		{"other authorities where clients must have certificates", some + "tls: {certFile: a, keyFile: b, clientCAFile: c, clientCertificates: Require}\nidentity:\n  authenticators:\n  - {requestHeader: {caFile: a}}\n",
			"gateway.yaml:8: identity.authenticators[0].requestHeader.caFile: must not be set where `tls.clientCertificates` is 'Require': then only certificates of the authorities in `tls.clientCAFile` survive the handshake"},
		{"reviews", some + "identity:\n  authenticators:\n  - {tokenReview: {}}\n  - {tokenReview: {upstream: b}}\n  - {tokenReview: {upstream: p, audiences: ['']}}\n",
			"gateway.yaml:7: identity.authenticators[0].tokenReview.upstream: Required value: must be the name of one of the `upstreams`\n" +
				"gateway.yaml:9: identity.authenticators[2].tokenReview.audiences[0]: Required value\n" +
				"gateway.yaml:8: identity.authenticators[1].tokenReview.upstream: must be the name of one of the `upstreams`, not 'b'\n" +
				"gateway.yaml:9: identity.authenticators[2].tokenReview.upstream: must name a backend of the dialect 'Kubernetes'; the dialect of 'p' is 'Plain'"},
		{"a review by nobody's upstream but the pod's, outside of a pod",
			"identity: {authenticators: [{tokenReview: {upstream: kubernetes}}]}\n",
			"gateway.yaml: upstreams: Required value: name at least one backend here or with --upstream"},
		{"credentials", "upstreams: [{name: a, endpoints: [http://a], credentials: Basic}, {name: p, endpoints: [http://p], dialect: Plain, credentials: Impersonate}]\nroutes: [{upstream: a}]\nidentity: {authenticators: [{requestHeader: {addresses: [10.0.0.1]}}]}\n",
			"gateway.yaml:3: upstreams[0].credentials: must be 'Pass', 'FrontProxy' or 'Impersonate', not 'Basic'\n" +
				"gateway.yaml:3: upstreams[1].credentials: must not be 'Impersonate' for the dialect 'Plain': only Kubernetes API servers know how to act as another user"},
		{"credentials without an account", "upstreams: [{name: a, endpoints: [https://a], dialect: Kubernetes, credentials: Impersonate}, {name: b, endpoints: [https://b], dialect: Kubernetes, credentials: FrontProxy, tokenFile: t}]\nroutes: [{upstream: a}]\nidentity: {authenticators: [{requestHeader: {addresses: [10.0.0.1]}}]}\n",
			"gateway.yaml:3: upstreams[0].credentials: must not be 'Impersonate' without `tokenFile`, `tls.certFile` or `kubeconfig`, by which the gateway has an account of its own\n" +
				"gateway.yaml:3: upstreams[1].credentials: must not be 'FrontProxy' without `tls.certFile` or `kubeconfig`: API servers believe a front proxy by its certificate"},
		{"credentials of nobody, and unknown ones", "upstreams: [{name: a, endpoints: [http://a], credentials: FrontProxy}, {name: b, endpoints: [http://b], credentials: pass}]\nroutes: [{upstream: a}]\n",
			"gateway.yaml:3: upstreams[1].credentials: must be 'Pass', 'FrontProxy' or 'Impersonate', not 'pass'\n" +
				"gateway.yaml:3: upstreams[0].credentials: must not be 'FrontProxy' without `identity`, which says who asks"},
		{"an issuer by HTTP, without audience and name",
			some + "identity:\n  authenticators:\n  - jwt:\n      issuer: {url: http://i}\n",
			"gateway.yaml:8: identity.authenticators[0].jwt.issuer.url: Invalid value: \"http://i\": URL scheme must be https\n" +
				"gateway.yaml:8: identity.authenticators[0].jwt.issuer.audiences: Required value: at least one issuer.audiences is required\n" +
				"gateway.yaml:7: identity.authenticators[0].jwt.claimMappings.username: Required value: claim or expression is required"},
		{"an expression", jwt("      claimMappings: {username: {expression: \"claims.sub +\"}}\n"),
			"gateway.yaml:9: identity.authenticators[0].jwt.claimMappings.username.expression: Invalid value: \"claims.sub +\": compilation failed: ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting"},
		{"an unknown field", jwt(name + "      claimValidationRule: []\n"), "gateway.yaml:10: identity.authenticators[0].jwt.claimValidationRule: unknown field; did you mean `claimValidationRules`?"},
		{"an egress selector", some + "identity:\n  authenticators:\n  - jwt:\n      issuer: {url: https://i, audiences: [g], egressSelectorType: cluster}\n" + name,
			"gateway.yaml:8: identity.authenticators[0].jwt.issuer.egressSelectorType: must not be set: the gateway has no egress selectors"},
		{"one issuer twice", jwt(name) + "  - jwt:\n      issuer: {url: https://i, audiences: [other]}\n" + name,
			"gateway.yaml:11: identity.authenticators[1].jwt.issuer.url: must be unique; `identity.authenticators[0]` has 'https://i' too"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, problem, _ := load(t, head+tt.content, Flags{}); problem != tt.want &&
				(tt.name != "an expression" || !strings.HasPrefix(problem, tt.want)) {
				t.Errorf("got\n%s\nwant\n%s", problem, tt.want)
			}
		})
	}
}
