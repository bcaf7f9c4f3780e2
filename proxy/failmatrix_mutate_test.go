package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// changing are policies for pods that cannot compute their changes: %s are the failure policy and
// the expression.
var changing = map[string]string{
	"MutatingAdmissionPolicy": `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p}
spec:
  failurePolicy: %s
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'x': string(%s)}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p}
`,
	"DefaultingPolicy": `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec:
  failurePolicy: %s
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  defaults: [{field: "metadata.labels[x]", valueExpression: "string(%s)"}]
`,
}

// TestFailMatrixOfChanges is the fail matrix for policies that change objects.
func TestFailMatrixOfChanges(t *testing.T) {
	long := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"l":[` +
		strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `]}}`
	const (
		over   = "object.spec.l.all(a, object.spec.l.all(b, a == b))"
		states = "---\napiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: plans}\nspec: {path: /v2/plans, mode: Poll, periodSeconds: 86400}\n"
	)
	created, updated := want{code: 201, written: 1, ignored: 1}, want{code: 200, written: 1, ignored: 1}
	denied := want{code: 403, reason: "Invalid", denied: 1}
	late, ignored := want{code: 504, reason: "Timeout", retry: "1", denied: 1},
		want{code: 504, reason: "Timeout", retry: "1", ignored: 1}
	for _, c := range []cell{
		{name: "policy error", spec: "object.spec.missing", fail: denied, pass: created},
		{name: "wrong type", spec: "object.metadata.name < 5", fail: denied, pass: created},
		{name: "cost", spec: over, object: long, fail: denied, pass: created},
		{name: "panic", spec: "dyn(bytes(object.metadata.name)) in ['a', 'b']", fail: denied, pass: created},
		{name: "timeout", spec: "object.spec.l.all(a, lists.range(150).all(b, b >= 0)) && " + over, object: long,
			request: "POST /api/v1/namespaces/team-a/pods?timeout=1ms", fail: late, pass: ignored},
		{name: "state missing", spec: "state.plans.size()", also: states, fail: denied, pass: created},
		{name: "old object GET fails", spec: "oldObject.spec.x", request: "PUT /api/v1/namespaces/team-a/pods/a",
			reads: "500 Internal Server Error",
			fail:  want{code: 500, reason: "InternalError"}, pass: want{code: 500, reason: "InternalError"}},
		{name: "error on an update", spec: "oldObject.spec.x", request: "PUT /api/v1/namespaces/team-a/pods/a",
			reads: "200 OK", fail: denied, pass: updated},
		{name: "queue full", spec: "1", object: strings.Replace(long, "[1,", "["+strings.Repeat("1,", 100_000), 1),
			settings: func(c *config.Configuration) { c.Limits.BodiesInFlightBytes = 1 },
			fail:     want{code: 503, reason: "ServiceUnavailable", retry: "1"},
			pass:     want{code: 503, reason: "ServiceUnavailable", retry: "1"}},
	} {
		for kind, policy := range changing {
			for failure, want := range map[string]want{"Fail": c.fail, "Ignore": c.pass} {
				t.Run(kind+"/"+c.name+"/"+failure, func(t *testing.T) {
					backend := newMatrixBackend(t, c.reads)
					cfg, err := config.Load("",
						config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
					if err != nil {
						t.Fatal(err)
					}
					if c.settings != nil {
						c.settings(cfg)
					}
					set := policiestest.Load(t, fmt.Sprintf(policy, failure, c.spec)+c.also)
					g := newTestGateway(t, cfg, func() *policies.Set { return set })
					checkCell(t, g, startGateway(t, g), &c, backend, want)
				})
			}
		}
	}
}
