package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const reviewedDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
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
              type: {type: string, enum: [Header, Cookie]}
              header: {type: string, maxLength: 100}
              list: {type: array, items: {type: string}}
              size:
                type: integer
                x-kubernetes-validations:
                - rule: self < 1000
                  message: should be < 1000
                - rule: self > 0
                  messageExpression: "'cannot be ' + (self < 0 ? 'negative' : 'zero')"
`

const reviewedPolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: p
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [widgets]}]}
  matchConditions:
  - {name: c, expression: "object.spec.sise < 3"}
  variables:
  - {name: header, expression: object.spec.heading}
  validations:
  - expression: object.spec.size < '5'
    message: size must be more than 5
  - expression: "object.spec.type != 'Header' || has(object.spec.header)"
    message: must have a header if type is Header
  - expression: "object.spec.list.all(a, object.spec.list.all(b, object.spec.list.all(c, a != b + c)))"
    messageExpression: "'list shouldn\\'t have ' + object.spec.list[0]"
  - expression: object.spec.header.size() < 50
    message: must be less than 50
  auditAnnotations:
  - {key: a, valueExpression: "string(object.metadata.lables['a'])"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: constant
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]}
  validations:
  - {expression: bool(string(dyn(1.5)))}
  - {expression: true || 1 / 0 == 1}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: constant}
spec: {policyName: constant, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: m
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{spec: Object.spec{size: object.spec.size + 1}}"}
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/size', value: object.spec.sise}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mb}
spec: {policyName: m}
`

// TestReview: VAL-4: what the author of a policy should know of it: messages, types, costs, and the rules that fail for
// every object.
func TestReview(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": reviewedDefinition, "b.yaml": reviewedPolicies})
	set, found := Load([]string{dir})
	const want = `b.yaml:8: spec.matchConditions[0].expression: ERROR: <input>:1:12: fails for every object: undefined field 'sise' | object.spec.sise < 3 | ...........^
b.yaml:12: spec.validations[0].expression: ERROR: <input>:1:18: fails for every object: found no matching overload for '_<_' applied to '(int, string)' | object.spec.size < '5' | .................^
b.yaml:21: spec.auditAnnotations[0].valueExpression: ERROR: <input>:1:23: fails for every object: undefined field 'lables' | string(object.metadata.lables['a']) | ......................^
b.yaml:30: spec.validations[0].expression: always fails, since it depends on no object: type conversion error from 'string' to 'bool'
b.yaml:54: spec.mutations[1].jsonPatch.expression: ERROR: <input>:1:61: fails for every object: undefined field 'sise' | [JSONPatch{op: 'add', path: '/spec/size', value: object.spec.sise}] | ............................................................^
b.yaml:10: spec.variables[0].expression: warning: example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'heading' | object.spec.heading | ...........^
b.yaml:16: spec.validations[2].expression: warning: example.com/v1, Kind=Widget: estimated cost exceeds budget by factor of more than 100x (try simplifying the expression, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
a.yaml:26: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0].message: warning: Invalid value: a requirement must be worded with 'must', not 'should be'; an inequality must be worded with 'greater than' or 'less than', 'or equal to' included, not 'be < 1000'; better: must be less than 1000
b.yaml:13: spec.validations[0].message: warning: an inequality must be worded with 'greater than' or 'less than', 'or equal to' included, not 'be more than 5'; better: size must be greater than 5
b.yaml:17: spec.validations[2].messageExpression: warning: a requirement must be worded with 'must', not 'shouldn't have'; better: list must not have
`
	if got := text(dir, found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if set != nil {
		t.Error("rules that fail for every object must refuse the policies")
	}
}

// TestIgnoredCosts: the author is warned of expressions that a client can let fail by their cost, if failures are
// ignored.
func TestIgnoredCosts(t *testing.T) {
	policy := func(failurePolicy string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  failurePolicy: ` + failurePolicy + `
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [widgets]}]}
  matchConditions:
  - {name: few, expression: "lists.range(object.spec.size).size() < 9"}
  variables:
  - {name: sizes, expression: "lists.range(object.spec.size)"}
  validations:
  - {expression: "lists.range(object.spec.size).all(i, i >= 0)"}
  - {expression: "object.spec.size < 9 && lists.range(object.spec.size).all(i, i >= 0)"}
  - {expression: "object.spec.list.all(a, a != '')", messageExpression: "string(lists.range(object.spec.size).size())"}
  - {expression: "object.spec.size > 3"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
`
	}
	const a = "a client can let this exceed its cost limit and use up the budget of the policy, and `failurePolicy: Ignore` then leaves it out, " +
		"and the expressions after it; set `failurePolicy: Fail`, or "
	const number = " warning: object.spec.size says how many items this makes: " + a +
		"compare object.spec.size with a bound first\n"
	for failurePolicy, want := range map[string]string{
		"Fail": "",
		"Ignore": "b.yaml:8: spec.matchConditions[0].expression:" + number +
			"b.yaml:10: spec.variables[0].expression:" + number + "b.yaml:12: spec.validations[0].expression:" +
			number +
			"b.yaml:14: spec.validations[2].expression: warning: example.com/v1, Kind=Widget: " + a + "add maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared\n",
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": reviewedDefinition, "b.yaml": policy(failurePolicy)})
		_, found := Load([]string{dir})
		var got strings.Builder
		for line := range strings.Lines(text(dir, found)) {
			line = strings.ReplaceAll(line, " example.com/v1, Kind=Widget: estimated cost exceeds budget by factor of more than 100x (try simplifying the expression, or adding "+
				"maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", "")
			if strings.HasPrefix(line, "b.yaml") && !strings.HasSuffix(line, "warning:\n") {
				got.WriteString(line)
			}
		}
		if got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", failurePolicy, got.String(), want)
		}
	}
}

// TestOwnWording: VAL-3: the ready-made policies and the definitions of our own kinds are worded as we ask of others.
func TestOwnWording(t *testing.T) {
	for _, pattern := range []string{"library/*", "crds/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			_, found := Load([]string{path})
			for _, f := range found {
				if strings.HasSuffix(f.Field, ".message") || strings.HasSuffix(f.Field, ".messageExpression") {
					t.Errorf("%v", f)
				}
			}
		}
	}
}

// TestReviewOfNatives: the types of Kubernetes' own kinds are known without files, fields that
// distinguish kinds and lists of one type that stand in two fields included.
func TestReviewOfNatives(t *testing.T) {
	policy := func(rules, validations string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [` + rules + `]}
  validations:
` + validations + `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], paramRef: {name: x, namespace: team-a, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x, namespace: team-a}
`
	}
	const (
		deployments = `{apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments]}`
		workloads   = `{apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments, statefulsets]}, {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}`
	)
	for _, c := range []struct{ rules, expression, want string }{
		{deployments, `object.spec.replicas <= 5`, ""},
		{deployments, `object.replicas <= 5`, "ERROR: <input>:1:7: fails for every object of 'Deployment': undefined field 'replicas' | object.replicas <= 5 | ......^"},
		{deployments, `object.spec.replicas <= '5'`, "ERROR: <input>:1:22: fails for every object of 'Deployment': found no matching overload for '_<=_' applied to '(int, string)' | object.spec.replicas <= '5' | .....................^"},
		{deployments, `(object.spec.template.spec.containers + object.spec.template.spec.initContainers).all(c, has(c.image))`, ""},
		{deployments, `object.spec.template.spec.containers.all(c, quantity(c.resources.limits['cpu']).isLessThan(quantity('1')))`, ""},
		{deployments, `object.spec.strategy.rollingUpdate.maxSurge == '25%' && object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')`, ""},
		{deployments, `params.data['max'] == object.metadata.name && params.dato == 'x'`, "apps/v1, Kind=Deployment: ERROR: <input>:1:53: undefined field 'dato' | params.data['max'] == object.metadata.name && params.dato == 'x' | ....................................................^"},
		{workloads, `object.kind == 'Pod' ? has(object.spec.containers) : has(object.spec.template)`, ""},
		{workloads, `object.spec.containers.size() > 0`, "ERROR: <input>:1:12: fails for every object of 'Deployment', 'StatefulSet': undefined field 'containers' | object.spec.containers.size() > 0 | ...........^"},
		{workloads, `!has(object.spec.containers) || object.spec.containers.size() > 0`, ""}, // fits pods
		{workloads, `object.spec.nothing == 1`, "ERROR: <input>:1:12: fails for every object of 'Pod', 'Deployment', 'StatefulSet': undefined field 'nothing' | object.spec.nothing == 1 | ...........^"},
	} {
		dir := testutil.WriteFiles(t,
			map[string]string{"a.yaml": policy(c.rules, "  - {expression: \""+c.expression+"\"}")})
		_, found := Load([]string{dir})
		want := ""
		if c.want != "" {
			want = "a.yaml:8: spec.validations[0].expression: warning: " + c.want + "\n"
		}
		if got := text(dir, found); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.expression, got, want)
		}
	}
}
