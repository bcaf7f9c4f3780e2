package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// everyRule matches creates, updates and deletions of everything.
const everyRule = `{resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: ["*"]}]}`

// wildcards are policies of each kind that match everything. Each refuses the name bad, or sets a
// field.
var wildcards = map[string]struct {
	file  string
	shows string // what the backend gets beside the name, or what the answer says
	code  int    // the code of a refusal; 0: the object is changed
}{
	"ValidatingAdmissionPolicy": {`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: ` + everyRule + `
  validations: [{expression: "request.operation == 'DELETE' || !has(object.bad)", message: never}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
`, "never", 422},
	"MutatingAdmissionPolicy": {`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/set', value: 'by p'}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p}
`, `"set":"by p"`, 0},
	"DefaultingPolicy": {`apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}]}
  defaults: [{field: set, value: by p}]
`, `"set":"by p"`, 0},
	"RegoPolicy": {`apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: p}
spec:
  matchConstraints: ` + everyRule + `
  rego: |
    package p
    deny contains "never" if input.review.object.bad
`, "never", 422},
	"ConventionPolicy": {`apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: p}
spec:
  checks: {unsafeIntegers: Deny}
`, "9007199254740993", 422},
	"ConstraintTemplate": {`apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: never}
spec:
  crd: {spec: {names: {kind: Never}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package never
      violation[{"msg": "never"}] { input.review.object.bad }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Never
metadata: {name: p}
spec: {match: {kinds: [{apiGroups: ["*"], kinds: ["*"]}]}}
`, "never", 403},
	"RateLimitPolicy": {`apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: never}
spec:
  match: {apiGroups: ["*"], resources: ["*"], verbs: [create, update]}
  key: Global
  requests: 1
  periodSeconds: 86400
`, "never", 429},
}

// TestWildcardsOnPlain: resources ["*"] of each kind of policy, and of limits, match the resources
// that a plain API serves at Kubernetes' paths, and nothing else of it. A dry run of a matched
// request is not stored.
func TestWildcardsOnPlain(t *testing.T) {
	const body = `{"metadata":{"name":"n"}, "bad" : true,"n":9007199254740993}`
	requests := []struct {
		line    string
		reached bool
	}{
		{"POST /apis/shop.example.com/v1/queues", true},
		{"PUT /apis/shop.example.com/v1/namespaces/x/queues/n", true},
		{"POST /apis/apps/v1/namespaces/x/deployments", true},
		{"POST /api/v1/namespaces/x/pods", true},
		{"POST /apis/shop/v1/queues", false},
		{"POST /api/v1/users", false},
		{"POST /api/v1/namespaces/x/users", false},
		{"POST /api/v2/pods", false},
		{"POST /v1/queues", false},
	}
	for kind, c := range wildcards {
		t.Run(kind, func(t *testing.T) {
			got := ""
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					http.NotFound(w, r)
					return
				}
				sent, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI + " " + string(sent)
				_, _ = w.Write(sent)
			}))
			defer backend.Close()
			for _, one := range requests {
				for _, query := range []string{"", "?dryRun=All"} {
					// Each has its own gateway, so that a limit has not been reached before.
					dir := policiestest.Write(t, c.file)
					address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
					method, path, _ := strings.Cut(one.line, " ")
					send := func() (int, string) {
						r, _ := http.NewRequest(method, "http://"+address+path+query, strings.NewReader(body))
						r.Header.Set("Content-Type", "application/json")
						answer, err := http.DefaultTransport.RoundTrip(r)
						if err != nil {
							t.Fatal(err)
						}
						defer func() { _ = answer.Body.Close() }()
						text, _ := io.ReadAll(answer.Body)
						return answer.StatusCode, string(text)
					}
					got = ""
					answered, text := send()
					if c.code == http.StatusTooManyRequests && one.reached {
						got = ""
						answered, text = send()
					}
					passed := one.line + query + " " + body
					switch {
					case !one.reached:
						if got != passed || answered != 200 {
							t.Errorf("%s%s, which is not reached, is answered %d %s, and the backend got %q, want %q",
								one.line, query, answered, text, got, passed)
						}
					case c.code != 0:
						if answered != c.code || !strings.Contains(text, c.shows) || got != "" {
							t.Errorf("%s%s is answered %d %s, and the backend got %q; want %d with %q", one.line, query,
								answered, text, got, c.code, c.shows)
						}
					case query != "":
						if got != "" || answered/100 != 2 || !strings.Contains(text, c.shows) {
							t.Errorf("the dry run of %s is answered %d %s, and the backend got %q", one.line, answered,
								text, got)
						}
					default:
						if !strings.HasPrefix(got, one.line+" {") || !strings.Contains(got, c.shows) {
							t.Errorf("%s is answered %d %s, and the backend got %q, want it with %q", one.line,
								answered, text, got, c.shows)
						}
					}
				}
			}
		})
	}
}

// TestSafeUpgradesOnPlain: the Gateway API's own policy for upgrades of its definitions, which
// names all resources of a group, decides for a plain backend as for Kubernetes.
func TestSafeUpgradesOnPlain(t *testing.T) {
	root := os.Getenv("SUITES_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "suites")
	}
	file := filepath.Join(root, "data", "gateway-api", "config", "crd", "experimental",
		"gateway.networking.k8s.io_vap_safeupgrades.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": string(text)})
	definition := func(group, channel, version, rest string) string {
		annotations := ""
		if channel != "" {
			annotations = `"gateway.networking.k8s.io/channel":"` + channel + `"`
		}
		if version != "" {
			annotations = strings.TrimPrefix(annotations+`,"gateway.networking.k8s.io/bundle-version":"`+version+`"`,
				",")
		}
		if annotations != "" {
			annotations = `,"annotations":{` + annotations + `}`
		}
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"` + annotations + rest + `},"spec":{"group":"` + group + `"}}`
	}
	stored := ""
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && stored == "":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		case r.Method == http.MethodGet:
			w.Header().Set("ETag", `"7"`)
			_, _ = w.Write([]byte(stored))
		default:
			_, _ = io.Copy(w, r.Body)
		}
	}))
	defer backend.Close()
	addresses := map[string]string{}
	for dialect, words := range map[string][]string{"Plain": nil, "Kubernetes": {"kubernetes"}} {
		addresses[dialect] = startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), words))
	}
	const own = "gateway.networking.k8s.io"
	cases, refused := 0, 0
	for _, group := range []string{own, "other.example.com"} {
		for _, channel := range []string{"standard", "experimental", ""} {
			for _, version := range []string{"v0.0.0-dev", "v1.5.0", "v1.10.1", "v1.4.9", "v0.8.0", ""} {
				for _, old := range []string{"absent", "standard", "experimental", ""} {
					method, path := "PUT", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b"
					rest := `,"resourceVersion":"7","uid":"u"`
					if stored = definition(group, old, version, rest); old == "absent" {
						method, path, rest, stored = "POST", strings.TrimSuffix(path, "/a.b"), "", ""
					}
					isNew := version == "v0.0.0-dev" || version == "v1.5.0" || version == "v1.10.1"
					want := http.StatusOK
					if group == own && (old != "absent" && channel != "standard" && old != "experimental" || !isNew) {
						want = http.StatusUnprocessableEntity
						refused++
					}
					cases++
					for dialect, address := range addresses {
						r, _ := http.NewRequest(method, "http://"+address+path,
							strings.NewReader(definition(group, channel, version, rest)))
						r.Header.Set("Content-Type", "application/json")
						answer, err := http.DefaultTransport.RoundTrip(r)
						if err != nil {
							t.Fatal(err)
						}
						got, _ := io.ReadAll(answer.Body)
						_ = answer.Body.Close()
						if answer.StatusCode != want {
							t.Errorf("%s: %s of group %q, channel %q, version %q over channel %q is answered %d %s, want %d", dialect, method, group, channel, version, old, answer.StatusCode, got, want)
						}
					}
				}
			}
		}
	}
	if t.Logf("%d cases, %d refused", cases, refused); refused == 0 {
		t.Error("nothing is refused")
	}
}
