package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// bundledTickets is an API, and two policies of one bundle about it. Only one fails closed.
const bundledTickets = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: tickets.support.example.com}
spec:
  group: support.example.com
  version: v2
  names: {plural: tickets, kind: Ticket}
  paths: {collection: /v2/tickets, item: "/v2/tickets/{name}"}
  fields: {name: id}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: tickets}
spec:
  bundle: team
  matchConditions: [{name: drafts, expression: "!has(object.draft)"}]
  matchConstraints: {resourceRules: [{apiGroups: [support.example.com], apiVersions: [v2], operations: [CREATE], resources: [tickets]}]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: warns}
spec:
  bundle: team
  failurePolicy: Ignore
  validationActions: [Warn]
  matchConstraints: {resourceRules: [{apiGroups: [support.example.com], apiVersions: [v2], operations: [CREATE], resources: [tickets]}]}
`

// ticketBundle is a bundle that refuses a word.
func ticketBundle(t *testing.T, revision, word, private string) []byte {
	return bundletest.Signed(t, map[string]string{
		".manifest":       `{"revision": "` + revision + `", "roots": ["tickets", "words"]}`,
		"words/data.json": `{"bad": ["` + word + `"]}`,
		"tickets/tickets.rego": "package tickets\n\ndeny contains msg if {\n\tsome word in data.words.bad\n\tcontains(input.review.object.subject, word)\n" +
			"\tmsg := sprintf(\"must not have the word '%s'\", [word])\n}\n",
	}, bundletest.Signature{Key: private, KeyID: "release", Scope: "write"})
}

func startBundled(t *testing.T, config, backend string) *process {
	t.Helper()
	p := startUnready(t, backend, "--config", config)
	testutil.Eventually(t, "serving", func() bool { return strings.Contains(p.log.String(), "msg=serving") })
	return p
}

// ticket writes one, and returns the code and the message of the answer.
func (p *process) ticket(t *testing.T, body string) string {
	t.Helper()
	resp, err := http.Post("http://"+p.listen+"/v2/tickets", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Message string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", answer.Message))
}

func (p *process) bundle(t *testing.T) admin.Bundle {
	t.Helper()
	var shown admin.Policies
	if err := json.Unmarshal([]byte(p.get("/policies").body), &shown); err != nil || len(shown.Bundles) != 1 {
		t.Fatalf("/policies has the bundles %+v, %v", shown.Bundles, err)
	}
	return shown.Bundles[0]
}

// TestBundles runs the gateway with a signed bundle of a server that speaks TLS and asks for a token:
// without a bundle the policy fails closed, each version comes into force whole, what is no good
// changes nothing, and after a restart without the server the last good version is there.
func TestBundles(t *testing.T) {
	_, backend := startBackend(t)
	authority := credentialstest.NewAuthority(t, "bundles")
	private, public := bundletest.Keys(t)
	stranger, _ := bundletest.Keys(t)
	var content atomic.Pointer[[]byte] // none: 503
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch now := content.Load(); {
		case r.Header.Get("Authorization") != "Bearer team-token":
			w.WriteHeader(http.StatusUnauthorized)
		case now == nil:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write(*now)
		}
	}))
	server.TLS = authority.Server(t, []string{"127.0.0.1"}).Config(t)
	server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, authority.Pool()
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	authority.Client(t, "gateway", nil).Write(t, dir, "gateway")
	for name, text := range map[string]string{"ca.crt": string(authority.PEM), "token": "team-token\n",
		"release.pem": public, "tickets.yaml": bundledTickets} {
		credentialstest.WriteFile(t, dir, name, []byte(text))
	}
	config := credentialstest.WriteFile(t, dir, "gateway.yaml", []byte(`
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
policies: [tickets.yaml]
drainSeconds: 0
bundles:
- name: team
  url: `+server.URL+`/team.tar.gz
  tokenFile: token
  tls: {caFile: ca.crt, certFile: gateway.crt, keyFile: gateway.key}
  minDelaySeconds: 1
  maxDelaySeconds: 1
  persistFile: team.tar.gz
  signing: {keys: [{name: release, algorithm: RS256, file: release.pem, scope: write}]}
`))

	p := startBundled(t, config, backend)
	ready := func() int { return p.get("/readyz").code }
	if got := p.get("/readyz/bundles"); got.code != 503 ||
		!strings.HasPrefix(got.body, "[-]bundles failed: the bundle 'team' has not been loaded: ") {
		t.Errorf("without a bundle it is ready: %+v", got)
	}
	expect := func(body, want string) {
		t.Helper()
		if got := p.ticket(t, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	const urgent, late = `{"id":"t1","subject":"urgent"}`, `{"id":"t2","subject":"late"}`
	const denied = `422 tickets.support.example.com "%s" is forbidden: policy 'tickets' denied request: must not have the word '%s'`
	expect(urgent, `422 tickets.support.example.com "t1" is forbidden: policy 'tickets' denied request: the bundle 'team' has not been loaded`)
	expect(`{"id":"t0","subject":"urgent","draft":true}`, "201") // the policy is not about it

	send := func(b []byte) { content.Store(&b) }
	revision := func() string { return p.bundle(t).Revision }
	send(ticketBundle(t, "r1", "urgent", private))
	testutil.Becomes(t, 200, ready)
	expect(urgent, fmt.Sprintf(denied, "t1", "urgent"))
	expect(late, "201")
	send(ticketBundle(t, "r2", "late", private))
	testutil.Becomes(t, "r2", revision)
	expect(late, fmt.Sprintf(denied, "t2", "late"))
	expect(urgent, "201")

	// An invalid bundle is reported, counted, and changes nothing.
	stage := func() string {
		if f := p.bundle(t).LastFailure; f != nil {
			return f.Stage + ": " + f.Message
		}
		return ""
	}
	for _, wrong := range []struct {
		content []byte
		want    string
	}{
		{ticketBundle(t, "r3", "urgent", stranger),
			"Verify: must be a bundle of OPA: failed to verify JWT signature: "},
		{ticketBundle(t, "r3", "urgent", private)[:400], "Verify: must be a whole archive: unexpected EOF"},
		{bundletest.Signed(t, map[string]string{"other.rego": "package other\n\np := 1\n"},
			bundletest.Signature{Key: private, KeyID: "release", Scope: "write"}),
			"Activate: "},
	} {
		send(wrong.content)
		testutil.Eventually(t, wrong.want, func() bool { return strings.HasPrefix(stage(), wrong.want) })
		expect(late, fmt.Sprintf(denied, "t2", "late"))
	}
	testutil.Eventually(t, "counted", func() bool {
		metrics := p.get("/metrics").body
		return strings.Contains(metrics, `gateway_bundle_failures_total{bundle="team",stage="Verify"} `) &&
			strings.Contains(metrics, `gateway_bundle_failures_total{bundle="team",stage="Activate"} `) &&
			strings.Contains(metrics, `gateway_bundle_age_seconds{bundle="team"} `)
	})
	row := regexp.MustCompile(`\nBUNDLE +REVISION +CONFIRMED +LAST FAILURE\nteam +r2 +20\S+Z +Activate at 20\S+Z: `)
	if got := run("status", "--admin", p.admin); !row.MatchString(got.stdout) {
		t.Errorf("gateway status prints %+v", got)
	}
	if got := p.get("/readyz"); got.code != 200 {
		t.Errorf("a wrong bundle ends readiness: %+v", got)
	}
	var shown admin.Policies
	if err := json.Unmarshal([]byte(p.get("/policies").body), &shown); err != nil || shown.Generation != 3 {
		t.Errorf("/policies has the generation %d, %v", shown.Generation, err)
	}

	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	content.Store(nil)
	p = startBundled(t, config, backend)
	testutil.Becomes(t, 200, ready)
	expect(late, fmt.Sprintf(denied, "t2", "late"))
	testutil.Eventually(t, "told", func() bool { return stage() == "Download: the server answered with code 503" })
	expect(late, fmt.Sprintf(denied, "t2", "late"))
}

// TestCheckBundles: a policy's bundle must be one of the configuration, and what is in a file is checked with the
// policy.
func TestCheckBundles(t *testing.T) {
	dir := t.TempDir()
	tickets := credentialstest.WriteFile(t, dir, "tickets.yaml", []byte(bundledTickets))
	config := func(lines string) string {
		return credentialstest.WriteFile(t, dir, "gateway.yaml",
			[]byte("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+
				"upstreams: [{name: api, endpoints: ['http://127.0.0.1:9000']}]\npolicies: [tickets.yaml]\n"+lines))
	}
	const good = "package tickets\n\ndeny contains \"no\" if false\n"
	archive := func(module string) string {
		return credentialstest.WriteFile(t, dir, "team.tar.gz",
			bundletest.Archive(t, map[string]string{"tickets.rego": module}))
	}
	if got := run("check", tickets); got.code != 0 {
		t.Errorf("without a configuration: %+v", got)
	}
	for _, c := range []struct{ name, lines, module, want string }{
		{"no bundle", "", good, tickets + ":15:3: spec.bundle: must be the name of a bundle of the configuration: it has none\n"},
		{"another", "bundles: [{name: other, url: 'http://127.0.0.1:1/'}]\n", good,
			"must be the name of a bundle of the configuration: 'other'\n"},
		{"of a server", "bundles: [{name: team, url: 'http://127.0.0.1:1/'}]\n", good, ""},
		{"of a file", "bundles: [{name: team, file: team.tar.gz}]\n", good, ""},
		{"no file", "bundles: [{name: team, file: none.tar.gz}]\n", good, "none.tar.gz: the file "},
		{"no module", "bundles: [{name: team, file: team.tar.gz}]\n", "",
			"spec.bundle: the bundle 'team' has no module\n"},
		{"an error", "bundles: [{name: team, file: team.tar.gz}]\n", "package tickets\n\ndeny contains x if true\n",
			"bundle:team/tickets.rego:3:15: rego_unsafe_var_error: var x is unsafe\n"},
		{"no rule", "bundles: [{name: team, file: team.tar.gz}]\n", "package tickets\n\np := 1\n",
			"no module defines one of the rules deny"},
	} {
		if c.module == "" {
			credentialstest.WriteFile(t, dir, "team.tar.gz",
				bundletest.Archive(t, map[string]string{"data.json": "{}"}))
		} else {
			archive(c.module)
		}
		got := run("check", "--config", config(c.lines))
		if (c.want == "") != (got.code == 0) || !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
	}
}

// TestRegistryBundle: a policy judges by a bundle of a registry that is known by its authority, and that asks
// for a password.
func TestRegistryBundle(t *testing.T) {
	_, backend := startBackend(t)
	authority := credentialstest.NewAuthority(t, "registry")
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	put := func(method, target, mediaType string, content []byte) {
		t.Helper()
		q := httptest.NewRequest(method, "/v2/team/policies/"+target, bytes.NewReader(content))
		q.Header.Set("Content-Type", mediaType)
		w := httptest.NewRecorder()
		if images.ServeHTTP(w, q); w.Code != http.StatusCreated {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	}
	push := func(word string) {
		t.Helper()
		layer := bundletest.Archive(t, map[string]string{
			"tickets.rego": "package tickets\n\ndeny contains \"no\" if contains(input.review.object.subject, \"" + word + "\")\n",
		})
		name := fmt.Sprintf("sha256:%x", sha256.Sum256(layer))
		put("POST", "blobs/uploads/?digest="+name, "", layer)
		put("PUT", "manifests/v1", "application/vnd.oci.image.manifest.v1+json", fmt.Appendf(nil,
			`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"%s","size":%d}]}`,
			name, len(layer)))
	}
	push("urgent")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "gateway" || password != "team-password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	server.TLS = authority.Server(t, []string{"127.0.0.1"}).Config(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"ca.crt": string(authority.PEM), "token": "team-password\n",
		"tickets.yaml": bundledTickets} {
		credentialstest.WriteFile(t, dir, name, []byte(text))
	}
	p := startBundled(t, credentialstest.WriteFile(t, dir, "gateway.yaml", []byte(`
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
policies: [tickets.yaml]
bundles:
- name: team
  url: oci`+strings.TrimPrefix(server.URL, "https")+`/team/policies:v1
  user: gateway
  tokenFile: token
  tls: {caFile: ca.crt}
  minDelaySeconds: 1
  maxDelaySeconds: 1
`)), backend)
	testutil.Becomes(t, 200, func() int { return p.get("/readyz").code })
	n := 0
	answer := func(subject string) string {
		n++
		return p.ticket(t, fmt.Sprintf(`{"id":"t%d","subject":"%s"}`, n, subject))[:3]
	}
	if got := answer("urgent"); got != "422" {
		t.Errorf("the answer is %s", got)
	}
	push("late")
	testutil.Becomes(t, "422", func() string { return answer("late") })
}

// TestTestBundles: policies of bundles are tested with what is in files, and so are the modules in these.
func TestTestBundles(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{
		"gateway.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: api, endpoints: ['http://127.0.0.1:9000']}]\n" +
			"bundles: [{name: team, file: team.tar.gz}, {name: other, url: 'http://127.0.0.1:1/'}]\n",
		"policies/tickets.yaml": bundledTickets,
		"policies/tickets_test.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: tickets}
spec:
  cases:
  - name: urgent
    request: {method: POST, path: /v2/tickets}
    object: {id: t1, subject: urgent}
    expect: {decision: Denied, causes: [{message: must not have the word 'urgent'}]}
  - name: late
    request: {method: POST, path: /v2/tickets}
    object: {id: t2, subject: late}
    expect: {decision: Allowed}
`,
		"policies/beside_test.rego": "package beside_test\n\nimport data.tickets\n\ntest_words if data.words.bad == [\"urgent\"]\n\n" +
			"test_late if count(tickets.deny) == 0 with input as {\"review\": {\"object\": {\"subject\": \"late\"}}}\n",
	})
	bundle := func(module string) {
		t.Helper()
		credentialstest.WriteFile(t, dir, "team.tar.gz", bundletest.Archive(t, map[string]string{
			"words/data.json": `{"bad": ["urgent"]}`, "tickets/tickets.rego": module,
			"tickets/tickets_test.rego": "package tickets_test\n\nimport data.tickets\n\n" +
				"test_urgent if count(tickets.deny) == 1 with input as {\"review\": {\"object\": {\"subject\": \"urgent\"}}}\n",
		}))
	}
	test := func() result {
		return run("test", "-v", "--config", filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "policies"))
	}
	const good = "package tickets\n\ndeny contains msg if {\n\tsome word in data.words.bad\n\tcontains(input.review.object.subject, word)\n" +
		"\tmsg := sprintf(\"must not have the word '%s'\", [word])\n}\n"
	bundle(good)
	got := test()
	for _, want := range []string{
		"PASS tickets/urgent (", "PASS tickets/late (",
		"PASS tickets_test/test_urgent (bundle:team/tickets/tickets_test.rego:5)",
		"PASS beside_test/test_words (", "PASS beside_test/test_late (", "5 passed, 0 failed, 0 skipped",
	} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	bundle(strings.Replace(good, "contains(input.review.object.subject, word)",
		"input.review.object.subject == \"late\"", 1))
	got = test()
	for _, want := range []string{"FAIL tickets/urgent (", "FAIL tickets/late (", "FAIL tickets_test/test_urgent (",
		"FAIL beside_test/test_late (", "PASS beside_test/test_words"} {
		if got.code != 1 || !strings.Contains(got.stdout, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	bundle("package tickets\n\ndeny contains x if true\n")
	if got = test(); got.code == 0 ||
		!strings.Contains(got.stdout+got.stderr, "rego_unsafe_var_error: var x is unsafe") {
		t.Errorf("a module that does not compile: %+v", got)
	}
	credentialstest.WriteFile(t, dir, "team.tar.gz", []byte("no"))
	if got = test(); got.code != 2 ||
		!strings.Contains(got.stderr, "team.tar.gz: must be an archive that gzip compressed") {
		t.Errorf("no archive: %+v", got)
	}
}
