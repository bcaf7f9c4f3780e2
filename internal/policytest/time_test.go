package policytest

import (
	"context"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestTime: cases say when their requests come, which rollouts and exceptions go by, and a case without a
// time comes now, whatever case was played before.
func TestTime(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{
		"n.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: data, annotations: {admission-gateway.io/rollout: '{"warnUntil": "2001-01-01T00:00:00Z"}'}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: has(object.data), message: must have data}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: data}
spec: {policyName: data, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: legacy}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [data]}]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], resourceNames: [legacy]}]}
  reason: imported
  expires: "2002-01-01T00:00:00Z"
`,
		"n_test.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: times}
spec:
  cases:
  - {name: before the rollout, time: "2000-12-31T23:59:59.999999999Z", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, expect: {decision: Warned, warnings: ["must have data: this request will be refused once it is enforced"]}}
  - {name: from the rollout on, time: "2001-01-01T00:00:00Z", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, expect: {decision: Denied, message: must have data}}
  - {name: now, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: legacy}}, expect: {decision: Denied}}
  - {name: before the exception ends, time: "2002-01-01T00:59:59+01:00", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: legacy}}, expect: {decision: Allowed}}
  - {name: when the exception ends, time: "2002-01-01T01:00:00+01:00", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: legacy}}, expect: {decision: Denied}}
  - {name: without an exception, time: "2001-12-31T00:00:00Z", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}, expect: {decision: Denied}}
`,
	})
	s, err := Run(context.Background(), Options{Paths: []string{dir}, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if s.Passed != 6 || len(s.Results) != 6 {
		t.Errorf("%d of %d cases passed: %+v", s.Passed, len(s.Results), s.Results)
	}
}
