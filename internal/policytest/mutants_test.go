package policytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/source"
)

// TestMutantsOfObjects: what each kind of object says of requests is changed in each place, one place at a time.
func TestMutantsOfObjects(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"match block", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a, labels: {requests: "3"}}
spec:
  policyName: a
  validationActions: [Deny, Audit]
  matchResources:
    namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x, z]}]}
    objectSelector: {}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods, services], resourceNames: [b]}]
    excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]
`, `6:3 spec.validationActions: ["Deny","Audit"] to ["Audit"]
8:5 spec.matchResources.namespaceSelector: {"matchExpressions":[{"key":"a","operator":"In","values":["x… is left out
8:44 spec.matchResources.namespaceSelector.matchExpressions[0]: {"key":"a","operator":"In","values":["x","z"]} is left out
8:53 spec.matchResources.namespaceSelector.matchExpressions[0].operator: In to NotIn
8:76 spec.matchResources.namespaceSelector.matchExpressions[0].values[0]: "x" is left out
8:79 spec.matchResources.namespaceSelector.matchExpressions[0].values[1]: "z" is left out
10:89 spec.matchResources.resourceRules[0].resources[0]: "pods" is left out
10:95 spec.matchResources.resourceRules[0].resources[1]: "services" is left out
10:122 spec.matchResources.resourceRules[0].resourceNames[0]: "b" is left out
11:28 spec.matchResources.excludeResourceRules[0]: {"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE… is left out
11:65 spec.matchResources.excludeResourceRules[0].operations: ["UPDATE"] to ["*"]`},
		{"limit", `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: a}
spec:
  match: {verbs: [create, update], namespaces: [x]}
  exemptions: {groups: [admins]}
  key: Global
  requests: 3
  periodSeconds: 60
`, `5:19 spec.match.verbs[0]: "create" is left out
5:27 spec.match.verbs[1]: "update" is left out
5:49 spec.match.namespaces[0]: "x" is left out
6:25 spec.exemptions.groups[0]: "admins" is left out
8:3 spec.requests: 3 to 4
9:3 spec.periodSeconds: 60 to 61`},
		{"exception", `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: a}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [x]}, {kind: RegoPolicy, names: [z]}]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  reason: because
`, `1:1 : the PolicyException 'a' is left out
5:14 spec.policies[0]: {"kind":"ValidatingAdmissionPolicy","names":["x"]} is left out
5:61 spec.policies[1]: {"kind":"RegoPolicy","names":["z"]} is left out
6:75 spec.matchConstraints.resourceRules[0].operations: ["CREATE"] to ["*"]`},
		{"defaults", `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: a}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  defaults:
  - {field: spec.default, value: 3}
  - {field: spec.b, value: 4, when: object.a == 1}
`, `7:5 spec.defaults[0]: {"field":"spec.default","value":3} is left out
8:5 spec.defaults[1]: {"field":"spec.b","value":4,"when":"object.a == 1"} is left out
8:31 spec.defaults[1].when: == to != at 10
8:31 spec.defaults[1].when: 1 to 2 at 13`},
		{"schema", `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: a}
spec:
  version: v1
  names: {plural: as, kind: A}
  paths: {collection: /as}
  schema:
    openAPIV3Schema:
      type: object
      properties:
        default: {type: integer, default: 3, maximum: 5}
        list: {type: array, minItems: 1, items: {type: object, default: {default: 1}}}
`, `12:34 spec.schema.openAPIV3Schema.properties.default.default: 3 is left out
12:46 spec.schema.openAPIV3Schema.properties.default.maximum: 5 to 6
13:29 spec.schema.openAPIV3Schema.properties.list.minItems: 1 to 0
13:64 spec.schema.openAPIV3Schema.properties.list.items.default: {"default":1} is left out`},
		{"Rego", `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: a}
spec:
  rego: |
    package a

    deny contains "no" if input.a > 1
`, `7:0 spec.rego: deny: input.a > 1 to false
7:0 spec.rego: deny: input.a > 1 to true
7:0 spec.rego: deny: > to >=
7:0 spec.rego: deny: 1 to 2`},
	} {
		f := source.File{Name: "a.yaml", Data: []byte(c.text)}
		var got []string
		for _, m := range mutantsOf(f) {
			got = append(got, fmt.Sprintf("%d:%d %s: %s", m.Line, m.Column, m.Field,
				strings.ReplaceAll(m.Change, "`", "")))
			if string(m.make()) == c.text {
				t.Errorf("%s: %s changes nothing", c.name, m.Change)
			}
		}
		if all := strings.Join(got, "\n"); all != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, all, c.want)
		}
	}
}
