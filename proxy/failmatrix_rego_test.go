package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// undecidableRego is a RegoPolicy for pods that cannot decide.
const undecidableRego = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: p}
spec:
  failurePolicy: %s
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]%s}
  %s
  rego: |
    package p

%s
`

// TestFailMatrixRego is "Fail matrix" of hostile-input.md, "Policies", for Rego: spec is a module, and binding more of
// the policy.
func TestFailMatrixRego(t *testing.T) {
	const loops = "deny contains \"no\" if {\n\tsome i in numbers.range(1, 10000)\n\tsome j in numbers.range(1, 10000)\n\ti + j < 0\n}"
	created, updated := want{code: 201, written: 1, ignored: 1}, want{code: 200, written: 1, ignored: 1}
	noMemoryDenied := want{code: 503, reason: "ServiceUnavailable", retry: "1", denied: 1}
	noMemoryIgnored := want{code: 503, reason: "ServiceUnavailable", retry: "1", ignored: 1}
	denied := want{code: 422, reason: "Invalid", denied: 1}
	unchanged := want{code: 403, reason: "Invalid", denied: 1}
	for _, c := range testutil.Sampled(3, []cell{
		{name: "error of a function", spec: `deny contains "no" if to_number(input.review.object.metadata.name) > 1`,
			fail: denied, pass: created},
		{name: "error in a match condition", spec: `deny contains "no"`,
			binding: "matchConditions: [{name: c, expression: object.spec.missing == 1}]", fail: denied, pass: created},
		{name: "undefined", spec: `allow if input.review.object.spec.missing == 1`, fail: denied, pass: created},
		{name: "undefined verdict of deny", spec: `deny := input.review.object.spec.missing`, fail: denied,
			pass: created},
		{name: "two verdicts", spec: "deny := {\"a\"} if input.review.name\n\ndeny := {\"b\"} if input.review.name",
			fail: denied, pass: created},
		{name: "no verdict", spec: `deny contains json.unmarshal("7")`, fail: denied, pass: created},
		{name: "budget", spec: loops, fail: denied, pass: created},
		{name: "memory", spec: `deny contains "no" if count(numbers.range(1, 1000000000)) == 7`, fail: denied,
			pass: created},
		{name: "no memory for all requests", spec: `deny contains "no" if count(numbers.range(1, 100000)) == 7`,
			settings: func(c *config.Configuration) { c.Limits.BodiesInFlightBytes = 1 << 20 },
			fail:     noMemoryDenied, pass: noMemoryIgnored},
		{name: "no memory for the values",
			spec: `deny contains "no" if json.marshal(input.review.object.spec.a) == "[]"`, object: `{"spec":{"a":[` +
				strings.Repeat("{},", 9999) + `{}]}}`,
			settings: func(c *config.Configuration) { c.Limits.BodiesInFlightBytes = 2 << 20 }, fail: noMemoryDenied,
			pass: noMemoryIgnored},
		{name: "no memory for a patch", spec: `patch := [{"op": "add", "path": "/spec/n", "value": count(numbers.range(1, 100000))}]`, settings: func(c *config.Configuration) { c.Limits.BodiesInFlightBytes = 1 << 20 },
			fail: noMemoryDenied, pass: noMemoryIgnored},
		{name: "timeout", spec: loops, request: "POST /api/v1/namespaces/team-a/pods?timeout=1ms",
			fail: want{code: 504, reason: "Timeout", retry: "1", denied: 1},
			pass: want{code: 504, reason: "Timeout", retry: "1", ignored: 1}},
		{name: "state missing", spec: `deny contains "no" if count(data.state.plans) == 0`,
			also: "---\napiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: plans}\nspec: {path: /v2/plans, mode: Poll, periodSeconds: 86400}\n",
			fail: denied, pass: created},
		{name: "parameter missing", spec: `deny contains "no" if input.parameters.data.a == "b"`,
			binding: "paramKind: {apiVersion: v1, kind: ConfigMap}\n  paramRef: {name: none, namespace: team-a, parameterNotFoundAction: Deny}", fail: denied, pass: created},
		{name: "namespace unreadable", selector: `, namespaceSelector: {matchLabels: {tier: prod}}`,
			spec: `deny contains "no"`, reads: "500 Internal Server Error",
			fail: denied, pass: created},
		{name: "old object GET fails",
			spec:    `deny contains "no" if input.review.object.spec != input.review.oldObject.spec`,
			request: "PUT /api/v1/namespaces/team-a/pods/a", reads: "500 Internal Server Error",
			fail: want{code: 500, reason: "InternalError"}, pass: want{code: 500, reason: "InternalError"}},
		{name: "error on an update", spec: `deny contains "no" if to_number(input.review.oldObject.metadata.name) > 1`,
			request: "PUT /api/v1/namespaces/team-a/pods/a",
			reads:   "200 OK", fail: denied, pass: updated},
		{name: "a patch that does not fit", spec: `patch := [{"op": "remove", "path": "/spec/missing"}]`,
			fail: unchanged, pass: created},
		{name: "defaults that are no object", spec: `defaults := json.unmarshal("[1]")`, fail: unchanged,
			pass: created},
		{name: "error in defaults", spec: `defaults := {"spec": {"n": to_number(input.review.object.metadata.name)}}`,
			fail: unchanged, pass: created},
	}) {
		for failure, want := range map[string]want{"Fail": c.fail, "Ignore": c.pass} {
			t.Run(c.name+"/"+failure, func(t *testing.T) {
				module := "    " + strings.ReplaceAll(strings.ReplaceAll(c.spec, "\t", "  "), "\n", "\n    ")
				text := fmt.Sprintf(undecidableRego, failure, c.selector, c.binding, module) + c.also
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
