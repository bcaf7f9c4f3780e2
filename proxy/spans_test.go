package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity/identitytest"
	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// traceID is the trace of all requests, sampled the client's span in it.
const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	sampled = "00-" + traceID + "-b7ad6b7169203331-01"
)

// noting is a backend that keeps which requests it got, and by which traceparent.
type noting struct {
	*httptest.Server

	mu   sync.Mutex
	seen map[string][]string // "METHOD PATH" by traceparent
}

func newNoting(t *testing.T, serve http.HandlerFunc) *noting {
	b := &noting{seen: map[string][]string{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasNoDiscovery(w, r) {
			return
		}
		b.mu.Lock()
		for _, id := range append(r.Header["Traceparent"], "") {
			b.seen[id] = append(b.seen[id], r.Method+" "+r.URL.Path)
		}
		b.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// check compares what the backend received with the spans of exchanges: each knows the very span
// that it is for.
func (b *noting) check(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	exchanges := 0
	for _, s := range spans {
		url := ""
		for _, a := range s.Attributes {
			if a.Key == "url.full" {
				url = a.Value.AsString()
			}
		}
		path, isOurs := strings.CutPrefix(url, b.URL)
		if s.SpanKind != trace.SpanKindClient || !isOurs {
			continue
		}
		exchanges++
		id := "00-" + s.SpanContext.TraceID().String() + "-" + s.SpanContext.SpanID().String() + "-01"
		if want := []string{s.Name + " " + path}; !slices.Equal(b.seen[id], want) {
			t.Errorf("with %s the backend got %q, want %q", id, b.seen[id], want)
		}
	}
	if all := b.seen[""]; len(all) != exchanges {
		t.Errorf("%d spans are of exchanges with the backend, which got %q", exchanges, all)
	}
}

// golden compares the spans with a file, after the gateway has ended.
func goldenSpans(t *testing.T, w *watched, kept *tracetest.InMemoryExporter, name string) tracetest.SpanStubs {
	t.Helper()
	if err := w.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.observers.tracer.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	spans := kept.GetSpans()
	got := spansText(spans)
	golden := filepath.Join("testdata", name)
	if *isUpdate {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v: the spans are\n%s\nwant\n%s", err, got, want)
	}
	return spans
}

// tracedBy starts a gateway with a configuration and policies, whose spans are kept.
func tracedBy(t *testing.T, configuration, files string, perMillion int32) (*watched, *tracetest.InMemoryExporter) {
	t.Helper()
	w, kept := configuredBy(t, configuration, files, perMillion)
	w.address = startGateway(t, w.Gateway)
	return w, kept
}

// configuredBy makes a gateway with a configuration and policies, whose spans are kept.
func configuredBy(t *testing.T, configuration, files string, perMillion int32) (*watched, *tracetest.InMemoryExporter) {
	t.Helper()
	text := "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nlisten: 127.0.0.1:0\n" + configuration
	c, err := config.Load(testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), text), config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	set, _ := policies.Load(nil)
	if files != "" {
		set = policiestest.LoadFiles(t, policiestest.Write(t, files))
	}
	tracer, kept := newTracer(t, perMillion)
	return &watched{Gateway: newObserved(t, c, func() *policies.Set { return set }, tracer)}, kept
}

const askingPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: asks}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: ["*"], operations: [CREATE], resources: [deployments]}]}
  validations:
  - {expression: "object.spec.replicas <= int(params.data.max)"}
  - {expression: "authorizer.group('').resource('pods').check('create').allowed()"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: asks}
spec: {policyName: asks, validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Deny}}
`

const deploymentOf = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d}}`

// answerReview answers whose a token is, and whether bot may do something: all but to create pods.
func answerReview(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == tokenReviewTarget:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"bot"}}}`)
	case path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","status":{"userInfo":{"username":"bot"}}}`)
	case strings.HasPrefix(path, "/apis/authorization.k8s.io/v1/"):
		w.WriteHeader(http.StatusCreated)
		kind := map[bool]string{true: "SelfSubjectAccessReview",
			false: "SubjectAccessReview"}[strings.Contains(path, "/self")]
		_, _ = fmt.Fprintf(w, `{"kind":%q,"status":{"allowed":%t}}`, kind, !strings.Contains(string(body), `"pods"`) &&
			kind == "SubjectAccessReview")
	case path == "/api/v1/namespaces/team-a/configmaps/limits":
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"limits","namespace":"team-a"},"data":{"max":"5"}}`)
	case path == "/api/v1" || path == "/apis/apps/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	default:
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, deploymentOf, 1)
	}
}

// Whatever the gateway asks a backend for a request has a span below the one of the request, and the backend learns it:
// whose a token is, objects that policies refer to, and what users may do.
func TestSpansOfQuestions(t *testing.T) {
	for _, tt := range []struct{ golden, configuration string }{
		{"spans-account.txt", "tokenFile: %s, credentials: Impersonate}]\nidentity: {authenticators: [{tokenReview: {upstream: main}}]}\n"},
		{"spans-client.txt", "credentials: Pass}]\n"},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			backend := newNoting(t, answerReview)
			configuration := "upstreams: [{name: main, endpoints: ['" + backend.URL + "'], dialect: Kubernetes, " +
				tt.configuration
			if strings.Contains(configuration, "%s") {
				configuration = fmt.Sprintf(configuration, secretFile(t, "gateways-own"))
			}
			w, kept := tracedBy(t, configuration, askingPolicy, 0)
			for _, replicas := range []int{4, 9} {
				w.ask(t, "POST", inTeamA, fmt.Sprintf(deploymentOf, replicas), "Authorization", "Bearer "+planted,
					"traceparent", sampled)
			}
			spans := goldenSpans(t, w, kept, tt.golden)
			backend.check(t, spans)
			if text := spansText(spans); strings.Contains(text, planted) {
				t.Errorf("the spans have the token:\n%s", text)
			}
		})
	}
}

// A preflight that the gateway asks the backend for has a span.
func TestSpansOfPreflights(t *testing.T) {
	backend := newNoting(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", page)
		w.WriteHeader(http.StatusNoContent)
	})
	text, err := os.ReadFile(filepath.Join("testdata", "policies", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w, kept := tracedBy(t, "upstreams: [{name: main, endpoints: ['"+backend.URL+"'], dialect: Plain}]\n", string(text),
		0)
	answer := w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":-1`, 1), "Origin", page,
		"traceparent", sampled)
	if got := answer.Header.Get("Access-Control-Allow-Origin"); answer.StatusCode != 422 || got != page {
		t.Fatalf("answered %d for the origin %q", answer.StatusCode, got)
	}
	backend.check(t, goldenSpans(t, w, kept, "spans-preflight.txt"))
}

// What Redis is asked has a span: decisions on limits, and locks.
func TestSpansOfRedis(t *testing.T) {
	redis := redistest.Start(t)
	backend := newNoting(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"n1"}`)
	})
	w, kept := tracedBy(t, "upstreams: [{name: main, endpoints: ['"+backend.URL+"'], dialect: Plain}]\nredis: {addresses: ['"+redis.Address+"'], database: 3}\n", `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes}
spec:
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  fields: {name: id}
  concurrency: BestEffort
  backend: {patch: Emulated}
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: reads}
spec: {match: {verbs: [get]}, key: Global, requests: 1, periodSeconds: 3600, scope: Shared}
`, 0)
	locks := newRedisLocks(t, redis.Address)
	w.locks.Share(locks)
	w.limiter.Share(locks.Store)
	if got := w.ask(t, "GET", "/v1/notes/n1", "", "traceparent", sampled).StatusCode; got != 200 {
		t.Errorf("answered %d", got)
	}
	w.ask(t, "PATCH", "/v1/notes/n1", `{"a":1}`, "Content-Type", "application/merge-patch+json", "traceparent", sampled)
	redis.Kill()
	w.ask(t, "PATCH", "/v1/notes/n1", `{"a":1}`, "Content-Type", "application/merge-patch+json", "traceparent", sampled)
	backend.check(t, goldenSpans(t, w, kept, "spans-redis.txt"))
}

// What an issuer is asked has a span of a trace of its own. The issuer does not learn it: it may
// belong to another trace.
func TestSpansOfIssuers(t *testing.T) {
	issuer := identitytest.NewIssuer(t)
	backend := newNoting(t, func(http.ResponseWriter, *http.Request) {})
	w, kept := tracedBy(t, fmt.Sprintf(`upstreams: [{name: main, endpoints: ['%s'], dialect: Plain}]
identity:
  authenticators:
  - jwt:
      issuer: {url: %s, audiences: [gateway], certificateAuthority: %q}
      claimMappings: {username: {expression: "'oidc:' + claims.sub"}}
`, backend.URL, issuer.URL, issuer.CA), "", 1_000_000)
	token := issuer.Token(map[string]any{"sub": "kim"})
	const unsampled = "00-" + traceID + "-b7ad6b7169203331-00"
	testutil.Becomes(t, 200, func() int {
		return w.ask(t, "GET", "/x", "", "Authorization", "Bearer "+token, "traceparent", unsampled).StatusCode
	})
	goldenSpans(t, w, kept, "spans-issuer.txt")
	if sent := issuer.Traceparents(); len(sent) > 0 {
		t.Errorf("the issuer got %q", sent)
	}
}

// What a policy asks by http.send has a span below the one of the request. The server does not learn it.
func TestSpansOfSend(t *testing.T) {
	asked := newNoting(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"yes"`) })
	backend := newNoting(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w, kept := tracedBy(t, "upstreams: [{name: main, endpoints: ['"+backend.URL+"'], dialect: Plain}]\n", `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes}
spec:
  group: example.com
  version: v1
  names: {kind: Note, plural: notes}
  envelope: Bare
  paths: {collection: /v1/notes, item: "/v1/notes/{name}"}
  fields: {name: id}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: asks}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [notes]}]}
  allowedHosts: [127.0.0.1]
  rego: |
    package asks
    deny contains "no" if http.send({"method": "get", "url": "`+asked.URL+`/x?token=secret"}).body == "no"
`, 0)
	if got := w.ask(t, "POST", "/v1/notes", `{"id":"a"}`, "traceparent",
		sampled).StatusCode; got != http.StatusCreated {
		t.Fatalf("answered %d", got)
	}
	spans := goldenSpans(t, w, kept, "spans-send.txt")
	if text := spansText(spans); strings.Contains(text, "secret") {
		t.Errorf("the spans have the query:\n%s", text)
	}
	asked.mu.Lock()
	defer asked.mu.Unlock()
	if len(asked.seen) != 1 || len(asked.seen[""]) != 1 {
		t.Errorf("the server has seen %v by traceparents", asked.seen)
	}
}

// Who is refused learns in which trace to look.
func TestTraceparentOfRefusals(t *testing.T) {
	const nowhere = widgetsPath + "/w1/status/more"
	of := func(id string) string { return "^00-" + id + "-[0-9a-f]{16}-" }
	for _, tt := range []struct {
		name       string
		perMillion int32
		shown      config.RequestIDs
		target     string
		own        string
		want       string
	}{
		{name: "new, sampled", perMillion: 1_000_000, target: nowhere, want: of("[0-9a-f]{32}") + "01$"},
		{name: "new, not sampled", target: nowhere, want: of("[0-9a-f]{32}") + "00$"},
		{name: "the client's, sampled", target: nowhere, own: sampled, want: of(traceID) + "01$"},
		{name: "the client's, not sampled", target: nowhere, own: "00-" + traceID + "-b7ad6b7169203331-00",
			want: "^00-" + traceID + "-b7ad6b7169203331-00$"},
		{name: "not one", target: nowhere, own: "wrong", want: of("[0-9a-f]{32}") + "00$"},
		{name: "a head that is refused", target: "/a%00", own: sampled, want: "^$"},
		{name: "an answer of the backend", target: "/x", own: sampled, want: "^$"},
		{name: "on all answers", shown: config.IDsOnAnswers, target: "/x", own: sampled, want: of(traceID) + "01$"},
		{name: "nothing is traced", perMillion: -1, target: nowhere, own: sampled, want: "^$"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			backend := newNoting(t, func(http.ResponseWriter, *http.Request) {})
			w := &watched{Gateway: gatewayFor(t, "testdata/policies/widgets.yaml",
				strings.TrimPrefix(backend.URL, "http://"), nil)}
			w.observers.isIDShown = tt.shown == config.IDsOnAnswers
			if tt.perMillion >= 0 {
				w.traced(t, tt.perMillion)
			}
			w.address = startGateway(t, w.Gateway)
			var header []string
			if tt.own != "" {
				header = []string{"traceparent", tt.own}
			}
			got := strings.Join(w.ask(t, "GET", tt.target, "", header...).Header["Traceparent"], ",")
			if !regexp.MustCompile(tt.want).MatchString(got) || strings.Contains(got, "b7ad6b7169203331-01") {
				t.Errorf("traceparent is %q, want %s", got, tt.want)
			}
		})
	}
}

// The backend gets the id of the audit log for a request that is traced too.
func TestAuditIDOfTraced(t *testing.T) {
	var ids []string
	backend := newNoting(t, func(_ http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("Audit-Id")+" of "+r.Header.Get("X-Request-Id"))
	})
	w := audited(t, strings.TrimPrefix(backend.URL, "http://"), &keptEvents{}, audit.Batch, auditPolicy)
	w.traced(t, 0)
	for _, own := range [][]string{nil, {"traceparent", sampled}} {
		w.ask(t, "GET", "/x", "", append(own, "X-Request-Id", "r1")...)
	}
	if want := []string{"r1 of r1", "r1 of r1"}; !slices.Equal(ids, want) {
		t.Errorf("the backend got %q, want %q", ids, want)
	}
}

// Nothing that is recorded of requests has credentials, or data of a Secret: not the log, metrics, spans, the audit
// log, and Events, for clients whose tokens an API server is asked about.
func TestRecordsHaveNoSecrets(t *testing.T) {
	var mu sync.Mutex
	var recorded strings.Builder
	backend := newNoting(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/") {
			answerReview(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		recorded.Write(body)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	events := func() string {
		mu.Lock()
		defer mu.Unlock()
		return recorded.String()
	}
	w, kept := configuredBy(t, fmt.Sprintf("upstreams: [{name: main, endpoints: ['%s'], dialect: Kubernetes, tokenFile: %s, credentials: Impersonate, events: Record}]\n"+
		"identity: {authenticators: [{tokenReview: {upstream: main}}]}\n", backend.URL,
		secretFile(t, "gateways-own-"+planted)),
		secretPolicies+"---\napiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n", 1_000_000)
	log, err := telemetry.OpenLog(&w.out,
		telemetry.LogOptions{Level: "Debug", Access: telemetry.AccessOptions{Refused: true, OneIn: 1}})
	if err != nil {
		t.Fatal(err)
	}
	w.log, w.Gateway.log, w.observers.access = log, log.Messages, log.Access
	audited := &keptEvents{}
	w.observers.audit = &audit.Auditor{
		Log: audit.New(audit.Options{QueueBytes: 1 << 20, Backoff: time.Second, MaxBackoff: time.Second},
			audit.Waiting{Sink: audited}), MaxEvent: 100 << 10,
	}
	w.address = startGateway(t, w.Gateway)
	encoded := base64.StdEncoding.EncodeToString([]byte(planted))
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"password":"` + encoded + `"},"stringData":{"password":"` + planted + `"}}`
	for _, namespace := range []string{"a", "b"} {
		for _, scheme := range []string{"Bearer ", "Basic "} {
			w.ask(t, "POST", "/api/v1/namespaces/"+namespace+"/secrets", secret, "Authorization", scheme+planted,
				"Cookie", "session="+planted)
		}
	}
	testutil.Eventually(t, "an Event is recorded", func() bool { return strings.Contains(events(), "AdmissionDenied") })
	metrics := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	outputs := map[string]string{"log": w.lines(t), "metrics": metrics.Body.String(), "Events": events()}
	if err := w.observers.audit.Log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.observers.tracer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	outputs["audit log"], outputs["spans"] = audited.String(), spansText(kept.GetSpans())
	for name, part := range map[string]string{
		"log": "gateway.policy=refused", "metrics": `gateway_admission_denials_total{policy="refused",reason="Invalid",resource="secrets"}`, "Events": leftOut,
		"audit log": `"admission-gateway.io/denied-by":"refused"`,
		"spans":     "/apis/authentication.k8s.io/v1/tokenreviews",
	} {
		if !strings.Contains(outputs[name], part) {
			t.Errorf("%s does not have %s:\n%s", name, part, outputs[name])
		}
	}
	for name, text := range outputs {
		if strings.Contains(text, planted) || strings.Contains(text, encoded) {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
}
