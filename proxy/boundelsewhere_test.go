package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// countingBackend is a server of ConfigMaps that records its requests, except for namespaces: team-a has the label
// tier=low.
type countingBackend struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newCountingBackend(t *testing.T) *countingBackend {
	t.Helper()
	b := &countingBackend{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version": // once, before the first dry run
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		case "/api/v1/namespaces/team-a": // is kept for a while
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a","labels":{"kubernetes.io/metadata.name":"team-a","tier":"low"}}}`)
			return
		case "/api/v1/namespaces/lost":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews": // is remembered for a while
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}`)
			return
		}
		b.mu.Lock()
		b.asked = append(b.asked, strings.TrimSuffix(r.Method+" "+r.URL.RawQuery, " "))
		b.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/none") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, namespace, _ := strings.Cut(r.URL.Path, "/namespaces/")
		namespace, _, _ = strings.Cut(namespace, "/")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"`+namespace+
			`","resourceVersion":"1","uid":"u"},"data":{"a":"b"}}`)
	}))
	t.Cleanup(b.Close)
	return b
}

// take returns what was asked since the last call.
func (b *countingBackend) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

// writeConfigMap sends a write about the ConfigMap a of a namespace as a user, and returns the answer.
func writeConfigMap(t *testing.T, address, method, namespace, user string) (code int, body string) {
	t.Helper()
	sent, contentType := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"`+namespace+
		`","uid":"u","resourceVersion":"1"},"data":{"a":"b"}}`, "application/json"
	switch method {
	case "PATCH":
		sent, contentType = `{"data":{"c":"d"}}`, "application/merge-patch+json"
	case "DELETE":
		sent = ""
	}
	r, err := http.NewRequest(method, "http://"+address+"/api/v1/namespaces/"+namespace+"/configmaps/a",
		strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	if user != "" {
		r.Header.Set("X-Remote-User", user)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// A policy that is bound elsewhere costs nothing at the backend: each write is one request, as
// without the policy. If it is bound the stored object is read, and a patch is tried, before that.
func TestBoundElsewhere(t *testing.T) {
	backend := newCountingBackend(t)
	policy := func(binding string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}]}
  validations: [{expression: "oldObject.data.a == 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept, annotations: {admission-gateway.io/unused: Allow}}
spec: {policyName: kept, validationActions: [Deny], matchResources: ` + binding + `}
`
	}
	none := map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH"}, "DELETE": {"DELETE"}}
	judged := map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
		"DELETE": {"GET", "DELETE"}}
	for name, c := range map[string]struct {
		binding string
		want    map[string][]string
	}{
		"everywhere":        {`{}`, judged},
		"this namespace":    {`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-a}}}`, judged},
		"another namespace": {`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-b}}}`, none},
		"other namespaces":  {`{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, team-a]}]}}`, none},
		"another object":    {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [b]}]}`, none},
		"another resource":  {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [secrets]}]}`, none},
		"another operation": {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CONNECT, CREATE], resources: [configmaps]}]}`, none},
		"not this object":   {`{excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [a]}]}`, none},
		"not other objects": {`{excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [b]}]}`, judged},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": policy(c.binding)})
			address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
				[]string{"kubernetes"}))
			for method, want := range c.want {
				backend.take()
				if code, text := writeConfigMap(t, address, method, "team-a", ""); code != http.StatusOK {
					t.Errorf("%s is answered %d %s", method, code, text)
				}
				if asked := backend.take(); !slices.Equal(asked, want) {
					t.Errorf("the backend is asked %q for a %s, want %q", asked, method, want)
				}
			}
		})
	}
}

// What the steps of a request would answer with an error is not passed over because a later step says no.
func TestOutsideKeepsErrors(t *testing.T) {
	backend := newCountingBackend(t)
	dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]}
  matchConditions: [{name: kim, expression: "request.userInfo.username == 'kim'"}]
  validations: [{expression: "oldObject.data.a == 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept}
spec:
  policyName: kept
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {tier: low}}}
  paramRef: {name: none, namespace: team-a, parameterNotFoundAction: Deny}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: some, namespace: team-a}
`})
	address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
		[]string{"kubernetes", "identity=Allow"}))
	if code, text := writeConfigMap(t, address, "PUT", "team-a", "lee"); code != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "no params found for policy binding") {
		t.Errorf("without the parameter the answer is %d %s", code, text)
	}
	if code, text := writeConfigMap(t, address, "PUT", "lost", "lee"); code != http.StatusNotFound ||
		!strings.Contains(text, `namespaces \"lost\" not found`) {
		t.Errorf("in a namespace that does not exist the answer is %d %s", code, text)
	}
}

// Constraints and mutators of Gatekeeper that are not about a request, as their match blocks say, cost nothing at the
// backend; and a constraint about another namespace that reads the stored object does not have it read for one that is
// here.
func TestGatekeeperElsewhere(t *testing.T) {
	backend := newCountingBackend(t)
	template := func(kind, rule string) string {
		return `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: ` + strings.ToLower(kind) + `}
spec:
  crd: {spec: {names: {kind: ` + kind + `}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE, UPDATE, DELETE]
    rego: |
      package ` + strings.ToLower(kind) + `
      violation[{"msg": "must stay"}] { ` + rule + ` }
---
`
	}
	constraint := func(kind, match string) string {
		return "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: " + kind + "\nmetadata: {name: " +
			strings.ToLower(kind) + "}\nspec: {match: " + match + "}\n---\n"
	}
	mutator := func(match string) string {
		return `apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: kept}
spec: {applyTo: [{groups: [''], versions: [v1], kinds: [ConfigMap]}], location: data.a, parameters: {assign: {value: b}}, match: ` + match + "}\n"
	}
	kept := template("Kept", `input.review.oldObject.data.a != "b"`)
	nothing := map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH"}, "DELETE": {"DELETE"}}
	judged := map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
		"DELETE": {"GET", "DELETE"}}
	tried := map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH dryRun=All", "PATCH"}, "DELETE": {"DELETE"}}
	for match, isHere := range map[string]bool{
		`{}`: true, `{namespaces: [team-a]}`: true, `{namespaces: [team-b, "team-b-*"]}`: false,
		`{namespaces: ["te*"]}`:          true,
		`{excludedNamespaces: [team-a]}`: false, `{excludedNamespaces: ["*-a"]}`: false,
		`{excludedNamespaces: [team-b]}`: true,
		`{scope: Cluster}`:               false, `{scope: Namespaced}`: true, `{name: a}`: true, `{name: b}`: false,
		`{name: "b*"}`:        true,
		`{source: Generated}`: false, `{source: Original}`: true,
		`{kinds: [{apiGroups: [apps], kinds: [Deployment]}]}`:                       false,
		`{kinds: [{apiGroups: [""], kinds: [ConfigMap]}]}`:                          true,
		`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-b}}}`: false,
		`{namespaceSelector: {matchLabels: {tier: high}}}`:                          false,
		`{namespaceSelector: {matchLabels: {tier: low}}}`:                           true,
	} {
		for what, c := range map[string]struct {
			policy string
			want   map[string][]string
		}{
			"constraint": {kept + constraint("Kept", match), judged},
			"mutator":    {mutator(match), tried},
			"beside one that reads nothing": {
				kept + constraint("Kept", match) + template("Plain", `input.review.object.data.a == "x"`) +
					constraint("Plain", `{namespaces: [team-a]}`), judged,
			},
		} {
			t.Run(what+" "+match, func(t *testing.T) {
				want := c.want
				switch {
				case isHere:
				case what == "beside one that reads nothing":
					want = map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH dryRun=All", "PATCH"},
						"DELETE": {"GET", "DELETE"}}
				default:
					want = nothing
				}
				dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": c.policy})
				address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
					[]string{"kubernetes"}))
				for method, want := range want {
					backend.take()
					if code, text := writeConfigMap(t, address, method, "team-a", ""); code != http.StatusOK {
						t.Errorf("%s is answered %d %s", method, code, text)
					}
					if asked := backend.take(); !slices.Equal(asked, want) {
						t.Errorf("the backend is asked %q for a %s, want %q", asked, method, want)
					}
				}
			})
		}
	}
}

// A policy of any kind costs nothing at the backend if labels of the namespace, or conditions that
// read only the request, show that it does not match. Requests that it matches, or may match, are
// judged as ever.
func TestOutside(t *testing.T) {
	backend := newCountingBackend(t)
	const rules = `resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}]`
	const changes = `resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]`
	const template = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: kept}
spec:
  crd: {spec: {names: {kind: Kept}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE, UPDATE, DELETE]
    rego: |
      package kept
      violation[{"msg": "must stay"}] { input.review.oldObject.data.a != "b" }
---
`
	// Of each kind: a policy with a selector of namespaces, and one with conditions.
	kinds := map[string]struct {
		selecting, conditional string // %s is the selector, or the conditions
		reads                  map[string][]string
	}{
		"ValidatingAdmissionPolicy": {
			selecting: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + rules + `}
  validations: [{expression: "oldObject.data.a == 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept}
spec: {policyName: kept, validationActions: [Deny], matchResources: {namespaceSelector: %s}}
`,
			conditional: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + rules + `}
  matchConditions: %s
  validations: [{expression: "oldObject.data.a == 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept}
spec: {policyName: kept, validationActions: [Deny]}
`,
			reads: map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
				"DELETE": {"GET", "DELETE"}},
		},
		"MutatingAdmissionPolicy": {
			selecting: `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: kept}
spec:
  reinvocationPolicy: Never
  matchConstraints: {` + changes + `}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'test', path: '/kind', value: oldObject.kind}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: kept}
spec: {policyName: kept, matchResources: {namespaceSelector: %s}}
`,
			conditional: `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: kept}
spec:
  reinvocationPolicy: Never
  matchConstraints: {` + changes + `}
  matchConditions: %s
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'test', path: '/kind', value: oldObject.kind}]"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: kept}
spec: {policyName: kept}
`,
			reads: map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
				"DELETE": {"DELETE"}},
		},
		"DefaultingPolicy": {
			selecting: `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + changes + `, namespaceSelector: %s}
  defaults: [{field: data.a, valueExpression: "oldObject.data.a"}]
`,
			conditional: `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + changes + `}
  matchConditions: %s
  defaults: [{field: data.a, valueExpression: "oldObject.data.a"}]
`,
			reads: map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
				"DELETE": {"DELETE"}},
		},
		"RegoPolicy": {
			selecting: `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + rules + `, namespaceSelector: %s}
  rego: |
    package kept
    deny contains "must stay" if input.review.oldObject.data.a != "b"
`,
			conditional: `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: kept}
spec:
  matchConstraints: {` + rules + `}
  matchConditions: %s
  rego: |
    package kept
    deny contains "must stay" if input.review.oldObject.data.a != "b"
`,
			reads: map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
				"DELETE": {"GET", "DELETE"}},
		},
		"Gatekeeper": {
			selecting: template + `apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Kept
metadata: {name: kept}
spec: {match: {namespaceSelector: %s}}
`,
			reads: map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"},
				"DELETE": {"GET", "DELETE"}},
		},
	}
	nothing := map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH"}, "DELETE": {"DELETE"}}
	const (
		forKim     = `[{name: kim, expression: "request.userInfo.username == 'kim'"}]`
		forData    = `[{name: data, expression: "has(object.data) && object.data.a == 'c'"}]`
		forAllowed = `[{name: may, expression: "authorizer.group('').resource('secrets').check('get').allowed()"}]`
		forKind    = `[{name: kind, expression: "request.kind.kind == 'Pod'"}]`
		failing    = `[{name: bad, expression: "request.userInfo.extra['none'][0] == 'a'"}, {name: data, expression: "object != null && object.kind == 'Pod'"}]`
		mixed      = `[{name: data, expression: "!has(object.data) || object.data.a == 'b'"}, {name: kim, expression: "request.userInfo.username == 'kim'"}]`
	)
	for name, k := range kinds {
		type writes struct {
			policy, user  string
			isFilteredOut bool
		}
		cases := map[string]writes{
			"labels of other namespaces": {fmt.Sprintf(k.selecting, `{matchLabels: {tier: high}}`), "lee", true},
			"labels of other namespaces,": {
				fmt.Sprintf(k.selecting, `{matchExpressions: [{key: tier, operator: NotIn, values: [low]}]}`), "lee",
				true},
			"labels of this namespace": {fmt.Sprintf(k.selecting, `{matchLabels: {tier: low}}`), "lee", false},
		}
		if k.conditional != "" {
			cases["another user"] = writes{fmt.Sprintf(k.conditional, forKim), "lee", true}
			cases["the user"] = writes{fmt.Sprintf(k.conditional, forKim), "kim", false}
			cases["the object decides"] = writes{fmt.Sprintf(k.conditional, forData), "lee", false}
			cases["who may not"] = writes{fmt.Sprintf(k.conditional, forAllowed), "lee", true}
			cases["the kind decides"] = writes{fmt.Sprintf(k.conditional, forKind), "lee", false}
			cases["a condition fails"] = writes{fmt.Sprintf(k.conditional, failing), "lee", false}
			cases["the object first"] = writes{fmt.Sprintf(k.conditional, mixed), "lee", true}
		}
		for what, c := range cases {
			t.Run(name+"/"+what, func(t *testing.T) {
				dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": c.policy})
				address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
					[]string{"kubernetes", "identity=Allow"}))
				want := k.reads
				if c.isFilteredOut {
					want = nothing
				}
				for method, want := range want {
					backend.take()
					code, text := writeConfigMap(t, address, method, "team-a", c.user)
					if code != http.StatusOK {
						t.Errorf("%s is answered %d %s", method, code, text)
					}
					if asked := backend.take(); !slices.Equal(asked, want) {
						t.Errorf("the backend is asked %q for a %s, want %q", asked, method, want)
					}
				}
			})
		}
	}
}

// TestConditionOfUpdates: a PUT that creates its object is a creation to a policy whose condition
// names updates, although it is known beforehand that the policy matches no creation.
func TestConditionOfUpdates(t *testing.T) {
	backend := newCountingBackend(t)
	policy := func(operations, conditions string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [coordination.k8s.io], apiVersions: [v1], operations: [` + operations + `], resources: [leases]}]}
` + conditions + `  validations: [{expression: "false", message: frozen}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
`
	}
	for name, text := range map[string]string{
		"a rule":                            policy("UPDATE", ""),
		"a condition":                       policy("CREATE, UPDATE", "  matchConditions: [{name: updates, expression: \"request.operation == 'UPDATE'\"}]\n"),
		"a condition that needs the object": policy("CREATE, UPDATE", "  matchConditions: [{name: updates, expression: \"request.operation == 'UPDATE' && object.kind != ''\"}]\n"),
	} {
		dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": text})
		address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"),
			[]string{"kubernetes"}))
		for object, want := range map[string]bool{"none": false, "a": true} {
			body := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + object +
				`","namespace":"team-a"},"spec":{}}`
			r, err := http.NewRequest("PUT", "http://"+address+"/apis/coordination.k8s.io/v1/namespaces/team-a/leases/"+
				object, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if isDenied := strings.Contains(string(got), "frozen"); isDenied != want {
				t.Errorf("%s, the object '%s': %d %s; denied %t, want %t", name, object, answer.StatusCode, got,
					isDenied, want)
			}
		}
	}
}
