package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// undecidable is a policy for pods that cannot decide; %s is its failure policy.
const undecidable = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  failurePolicy: %s
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]%s}
  %s
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]%s}
`

// A cell is one fault, with what comes of it by the failure policy.
type cell struct {
	name       string
	selector   string // more of the constraints
	spec       string // the rest of the policy
	binding    string // more of the binding
	also       string // other objects in the files
	request    string // "METHOD target"; a creation if empty
	object     string
	settings   func(*config.Configuration)
	reads      string // the backend's answer to GET, by default 404
	fail, pass want
}

// want is the answer to the client, whether the write arrives, and which counters the policy has.
type want struct {
	code            int
	reason          metav1.StatusReason
	retry           string
	written         int64
	denied, ignored int
}

// matrix is "Fail matrix" of hostile-input.md, "Policies", for CEL.
func matrix() []cell {
	long := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"l":[` +
		strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `]}}`
	const (
		over = `{expression: "object.spec.l.all(a, object.spec.l.all(b, a == b))"}`
		near = `{expression: "object.spec.l.all(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(b, object.spec.l[0] + b > 0))"}`
	)
	created, updated := want{code: 201, written: 1, ignored: 1}, want{code: 200, written: 1, ignored: 1}
	denied := want{code: 422, reason: "Invalid", denied: 1}
	return []cell{
		{name: "policy error", spec: `validations: [{expression: object.spec.missing == 1}]`, fail: denied,
			pass: created},
		{name: "error in a match condition", spec: `{matchConditions: [{name: c, expression: object.spec.missing == 1}], validations: [{expression: "false"}]}`, fail: denied, pass: created},
		{name: "error in a variable", spec: `{variables: [{name: v, expression: object.spec.missing}], validations: [{expression: variables.v == 1}]}`, fail: denied, pass: created},
		{name: "wrong type", spec: `validations: [{expression: object.metadata.name < 5}]`, fail: denied,
			pass: created},
		{name: "panic", spec: `validations: [{expression: "dyn(bytes(object.metadata.name)) in ['a', 'b']"}]`,
			fail: denied, pass: created},
		{name: "cost of one expression", spec: `validations: [` + over + `]`, object: long, fail: denied,
			pass: created},
		{name: "shared cost", spec: `validations: [` + strings.TrimSuffix(strings.Repeat(near+", ", 300), ", ") + `]`,
			object: long, fail: denied, pass: created},
		{name: "timeout", spec: `validations: [` + strings.TrimSuffix(strings.Repeat(near+", ", 300), ", ") + `]`,
			object: long, request: "POST /api/v1/namespaces/team-a/pods?timeout=1ms",
			fail: want{code: 504, reason: "Timeout", retry: "1", denied: 1},
			pass: want{code: 504, reason: "Timeout", retry: "1", ignored: 1}},
		{name: "state missing", spec: `validations: [{expression: "state.plans.exists(p, p.id == 'a')"}]`,
			also: "---\napiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: plans}\nspec: {path: /v2/plans, mode: Poll, periodSeconds: 86400}\n",
			fail: denied, pass: created},
		{name: "parameter missing", spec: `{paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "params.data.a == 'b'"}]}`,
			binding: ", paramRef: {name: none, namespace: team-a, parameterNotFoundAction: Deny}", fail: denied,
			pass: created},
		{name: "namespace unreadable", selector: `, namespaceSelector: {matchLabels: {tier: prod}}`,
			spec: `validations: [{expression: "false"}]`, reads: "500 Internal Server Error",
			fail: denied, pass: created},
		{name: "old object GET fails", spec: `validations: [{expression: object.spec == oldObject.spec}]`,
			request: "PUT /api/v1/namespaces/team-a/pods/a", reads: "500 Internal Server Error",
			fail: want{code: 500, reason: "InternalError"}, pass: want{code: 500, reason: "InternalError"}},
		{name: "error on an update", spec: `validations: [{expression: oldObject.spec.missing == 1}]`,
			request: "PUT /api/v1/namespaces/team-a/pods/a",
			reads:   "200 OK", fail: denied, pass: updated},
		{name: "queue full", spec: `validations: [{expression: "true"}]`,
			object:   strings.Replace(long, "[1,", "["+strings.Repeat("1,", 100_000), 1),
			settings: func(c *config.Configuration) { c.Limits.BodiesInFlightBytes = 1 },
			fail:     want{code: 503, reason: "ServiceUnavailable", retry: "1"},
			pass:     want{code: 503, reason: "ServiceUnavailable", retry: "1"}},
	}
}

// TestFailMatrix: each fault with each failure policy has one answer, and one counter that counts
// it; nothing fails open by accident.
func TestFailMatrix(t *testing.T) {
	for _, c := range testutil.Sampled(3, matrix()) {
		for failure, want := range map[string]want{"Fail": c.fail, "Ignore": c.pass} {
			t.Run(c.name+"/"+failure, func(t *testing.T) {
				t.Parallel()
				spec := c.spec
				if inner, ok := strings.CutPrefix(spec, "{"); ok {
					spec = strings.NewReplacer("], validations:", "]\n  validations:", "}, validations:",
						"}\n  validations:").Replace(strings.TrimSuffix(inner, "}"))
				}
				text := fmt.Sprintf(undecidable, failure, c.selector, spec, c.binding) + c.also
				backend := newMatrixBackend(t, c.reads)
				cfg, err := config.Load("", config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
				if err != nil {
					t.Fatal(err)
				}
				if c.settings != nil {
					c.settings(cfg)
				}
				set := policiestest.Load(t, text)
				g := newTestGateway(t, cfg, func() *policies.Set { return set })
				checkCell(t, g, startGateway(t, g), &c, backend, want)
			})
		}
	}
}

func checkCell(t *testing.T, g *Gateway, address string, c *cell, backend *matrixBackend, want want) {
	t.Helper()
	request, object := c.request, c.object
	if request == "" {
		request = "POST /api/v1/namespaces/team-a/pods"
	}
	if object == "" {
		object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"1"},"spec":{}}`
		if strings.HasPrefix(request, "POST") {
			object = strings.Replace(object, `,"resourceVersion":"1"`, "", 1)
		}
	}
	raw := exchangeRaw(t, address, scenario.JSON(request, object))
	if want.code < 300 {
		if !strings.HasPrefix(string(raw), fmt.Sprint("HTTP/1.1 ", want.code)) {
			t.Errorf("answered %s, want %d", raw, want.code)
		}
	} else {
		checkStatus(t, raw, want.code, want.reason, want.retry)
	}
	if got := backend.written.Load(); got != want.written {
		t.Errorf("%d writes arrived, want %d", got, want.written)
	}
	if got := counted(t, g, "gateway_admission_errors"); got != want.denied {
		t.Errorf("%d errors are counted, want %d", got, want.denied)
	}
	if got := counted(t, g, "gateway_admission_denials"); got != 0 {
		t.Errorf("%d denials are counted of a policy that fails", got)
	}
	if got := counted(t, g, "gateway_admission_ignored_failures"); (got > 0) != (want.ignored > 0) {
		t.Errorf("%d ignored failures are counted, want %d", got, want.ignored)
	}
}

// counted is the value of a counter of the policy p.
func counted(t *testing.T, g *Gateway, name string) int {
	t.Helper()
	w := httptest.NewRecorder()
	g.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	m := regexp.MustCompile(`(?m)^` + name + `_total\{[^}]*policy="p"[^}]*\} (\d+)$`).FindStringSubmatch(
		w.Body.String())
	if m == nil {
		return 0
	}
	n := 0
	_, _ = fmt.Sscan(m[1], &n)
	return n
}

// matrixBackend answers every read the same way and counts the writes.
type matrixBackend struct {
	address string
	written atomic.Int64
}

func newMatrixBackend(t *testing.T, reads string) *matrixBackend {
	t.Helper()
	b := &matrixBackend{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = ln.Addr().String()
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			code := http.StatusOK
			body := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"1"},"spec":{}}`
			switch r.Method {
			case http.MethodGet:
				code = http.StatusNotFound
				if reads != "" {
					_, _ = fmt.Sscan(reads, &code)
				}
				if code >= 400 {
					reason := map[int]string{404: "NotFound", 500: "InternalError"}[code]
					body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"%s","code":%d}`, reason, code)
				}
			case http.MethodPost:
				code = http.StatusCreated
				b.written.Add(1)
			default:
				b.written.Add(1)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	return b
}

// TestFailMatrixReload is the cell "reload broken": files that do not compile leave what is in
// force as it was, and a counter counts them.
func TestFailMatrixReload(t *testing.T) {
	for failure, want := range map[string]want{"Fail": {code: 422, reason: "Invalid", denied: 1},
		"Ignore": {code: 201, written: 1, ignored: 1}} {
		t.Run(failure, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "policy.yaml")
			good := fmt.Sprintf(undecidable, failure, "", `validations: [{expression: object.spec.missing == 1}]`, "")
			testutil.WriteFile(t, file, good)
			metrics, err := telemetry.New(telemetry.Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			quiet := slog.New(slog.DiscardHandler)
			manager, _ := policies.NewManager([]string{dir},
				policies.Options{Log: quiet, Rejected: func([]finding.Finding) { metrics.PoliciesRejected() }})
			if manager == nil {
				t.Fatal("the policies do not compile")
			}
			testutil.WriteFile(t, file, "kind: nonsense\n")
			if found := manager.Reload(); !finding.HasErrors(found) {
				t.Fatalf("the broken files have no errors: %v", found)
			}
			backend := newMatrixBackend(t, "")
			cfg, err := config.Load("", config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
			if err != nil {
				t.Fatal(err)
			}
			g, err := New(Options{Config: cfg, Policies: manager.Current, Limiter: ratelimit.New(0),
				States: newStates(t, manager.Current()), Metrics: metrics, Log: quiet})
			if err != nil {
				t.Fatal(err)
			}
			checkCell(t, g, startGateway(t, g), &cell{}, backend, want)
			w := httptest.NewRecorder()
			metrics.Handler().ServeHTTP(w,
				httptest.NewRequest(http.MethodGet, "/metrics", nil).WithContext(context.Background()))
			if !regexp.MustCompile(`(?m)^gateway_policy_reload_failure_total(\{[^}]*\})? 1$`).MatchString(
				w.Body.String()) {
				t.Error("no counter tells of the broken files")
			}
		})
	}
}
