package proxy

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestBuiltinErrors: a policy, and a template, may ask that an error of a built-in function counts as an
// undefined value. The request passes, and each decision that was relaxed is counted.
func TestBuiltinErrors(t *testing.T) {
	const policy = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: p}
spec:
  BUILTIN
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  rego: |
    package p

    deny contains "no" if to_number(input.review.object.metadata.name) > 1

    violation contains "no" if to_number(input.review.object.metadata.name) > 1
`
	const template = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: p, annotations: {BUILTIN}}
spec:
  crd: {spec: {names: {kind: p}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package numbers
      violation[{"msg": "no"}] { to_number(input.review.object.metadata.name) > 1 }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: p
metadata: {name: pods}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}
`
	refused := want{code: 422, reason: "Invalid", denied: 1}
	for _, c := range []struct {
		name, text, setting string
		want                want
		relaxed             int
	}{
		{"a policy", policy, "builtinErrors: Error", refused, 0},
		{"a policy that says nothing", policy, "", refused, 0},
		{"a lenient policy", policy, "builtinErrors: Undefined", want{code: 201, written: 1}, 1},
		{"a template", template, "admission-gateway.io/builtin-errors: Error",
			want{code: 403, reason: "Forbidden", denied: 1}, 0},
		{"a lenient template", template, "admission-gateway.io/builtin-errors: Undefined", want{code: 201, written: 1},
			1},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := newMatrixBackend(t, "")
			cfg, err := config.Load("", config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
			if err != nil {
				t.Fatal(err)
			}
			set := policiestest.Load(t, strings.Replace(c.text, "BUILTIN", c.setting, 1))
			g := newTestGateway(t, cfg, func() *policies.Set { return set })
			checkCell(t, g, startGateway(t, g), &cell{}, backend, c.want)
			if got := counted(t, g, "gateway_admission_relaxed_errors"); got != c.relaxed {
				t.Errorf("%d relaxed errors are counted, want %d", got, c.relaxed)
			}
		})
	}
}
