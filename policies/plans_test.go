package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestPlans: every expression of the files is named with its place and how it runs.
func TestPlans(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions:
  - {name: named, expression: has(object.metadata.name)}
  variables:
  - name: images
    expression: object.spec.containers.map(c, c.image)
  validations:
  - expression: variables.images.all(i, i != '')
    messageExpression: "'images: ' + variables.images.join(', ')"
    message: object.spec.paused
  auditAnnotations:
  - {key: images, valueExpression: "variables.images.join(',')"}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: r}
spec:
  match:
    matchConditions:
    - {name: lists, expression: request.verb == 'list'}
  keyExpression: request.userInfo.username
  requests: 1
  periodSeconds: 1
`, "b.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
            x-kubernetes-validations:
            - rule: self.size < 5
              messageExpression: "'too large: ' + string(self.size)"
`, "c.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: judged}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validationActions: [Deny]
  rego: |
    package judged
    deny contains "no" if input.review.object.spec.paused
    warn contains "as before" if count([]) == 1 with count as 1
    allowed if input.a == 1
`})
	var got []string
	for _, p := range Plans([]string{dir}) {
		got = append(got, strings.TrimPrefix(p.String(), dir+"/"))
	}
	want := []string{
		"a.yaml:7: spec.matchConditions[0].expression: native",
		"a.yaml:10: spec.variables[0].expression: native",
		"a.yaml:12: spec.validations[0].expression: native",
		"a.yaml:13: spec.validations[0].messageExpression: native",
		"a.yaml:16: spec.auditAnnotations[0].valueExpression: native",
		"a.yaml:24: spec.match.matchConditions[0].expression: native",
		"a.yaml:25: spec.keyExpression: native",
		"b.yaml:21: spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-validations[0].rule: native",
		"b.yaml:22: spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-validations[0].messageExpression: native",
		"c.yaml:1: data.judged.deny: native",
		"c.yaml:1: data.judged.warn: OPA: there is no step for with count",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := (Plan{File: "a.yaml", Line: 1, Field: "spec.x",
		Reason: "it has a loop that is no known macro"}).String(); got != "a.yaml:1: spec.x: cel-go: it has a loop that is no known macro" {
		t.Error(got)
	}
}

// TestPlansOfOneText: each place of an expression has its own program, also if another place of the object has the same
// text.
func TestPlansOfOneText(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  defaults:
  - {field: "metadata.labels[team]", valueExpression: object.metadata.name}
  - {field: "metadata.labels[owner]", valueExpression: object.metadata.name}
  - {field: "metadata.labels[user]", valueExpression: object.metadata.name}
`})
	programs := map[*cel.Program]string{}
	for _, p := range Plans([]string{dir}) {
		if other := programs[p.Program]; other != "" {
			t.Errorf("%s and %s have one program", other, p.Field)
		}
		programs[p.Program] = p.Field
	}
	if len(programs) != 3 {
		t.Errorf("%d programs", len(programs))
	}
}
