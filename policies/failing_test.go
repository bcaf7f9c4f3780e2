package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestDivisionByZero: an expression that constants make fail is one error of the load, with one id, whatever kind of
// object has it.
func TestDivisionByZero(t *testing.T) {
	const (
		v1       = "apiVersion: admissionregistration.k8s.io/v1\nkind: "
		own      = "apiVersion: admission-gateway.io/v1alpha1\nkind: "
		spec     = "\nmetadata: {name: p}\nspec:\n  "
		match    = spec + "matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}\n"
		when     = "  matchConditions: [{name: c, expression: object.spec.size / 0 > 1}]\n"
		whenPath = "spec.matchConditions[0].expression"
		module   = "  rego: |\n    package policy\n    deny contains \"x\" if input.review.object.spec.size > 3\n"
		limit    = own + "RateLimitPolicy" + spec + "requests: 5\n  periodSeconds: 1\n  "
		schema   = "{type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size / 0 > 1, message: must be}]}"
		rule     = "x-kubernetes-validations[0].rule"
		binding  = "---\n" + v1 + "ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: p, validationActions: [Deny]}\n"
		patch    = "[JSONPatch{op: 'add', path: '/spec/size', value: object.spec.size / 0}]"
		binds    = "---\n" + v1 + "MutatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: p}\n"
	)
	for name, c := range map[string]struct{ text, field string }{
		"a condition of a ValidatingAdmissionPolicy": {v1 + "ValidatingAdmissionPolicy" + match + when +
			"  validations: [{expression: 'true'}]\n" + binding, whenPath},
		"a ValidatingAdmissionPolicy": {v1 + "ValidatingAdmissionPolicy" + match +
			"  validations: [{expression: object.spec.size / 0 > 1}]\n" + binding, "spec.validations[0].expression"},
		"a MutatingAdmissionPolicy": {v1 + "MutatingAdmissionPolicy" + match + "  reinvocationPolicy: Never\n" +
			"  mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"" + patch + "\"}}]\n" + binds,
			"spec.mutations[0].jsonPatch.expression"},
		"a DefaultingPolicy": {own + "DefaultingPolicy" + match +
			"  defaults: [{field: spec.size, valueExpression: object.spec.size / 0}]\n",
			"spec.defaults[0].valueExpression"},
		"a condition of a ConventionPolicy": {own + "ConventionPolicy" + match + when +
			"  checks: {conditions: Deny}\n", whenPath},
		"a condition of a RegoPolicy": {own + "RegoPolicy" + match + when + module, whenPath},
		"a condition of a PolicyException": {own + "PolicyException" + match + when + "  policies: [{kind: ValidatingAdmissionPolicy, names: [x]}]\n  reason: It is.\n  expires: 2999-01-01T00:00:00Z\n---\n" +
			v1 + "ValidatingAdmissionPolicy" + strings.Replace(match, "name: p", "name: x", 1) +
			"  validations: [{expression: 'object.spec.size > 1'}]\n" + strings.Replace(binding, "policyName: p",
			"policyName: x", 1), whenPath},
		"a condition of a RateLimitPolicy": {limit + "match: {matchConditions: [{name: c, expression: size(request.path) / 0 > 1}]}\n", "spec.match." + strings.TrimPrefix(whenPath, "spec.")},
		"a key of a RateLimitPolicy":       {limit + "keyExpression: string(size(request.path) / 0)\n", "spec.keyExpression"},
		"a cost of a RateLimitPolicy":      {limit + "cost: size(request.path) / 0\n", "spec.cost"},
		"a CustomResourceDefinition": {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.example.com}\n" +
			"spec:\n  group: example.com\n  names: {plural: others, kind: Other}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" +
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: " + schema + "}}}\n",
			"spec.versions[0].schema.openAPIV3Schema.properties.spec." + rule},
		"an APIResource": {own + "APIResource" + spec + "group: shop\n  version: v1\n  envelope: Bare\n  names: {plural: others, kind: Other}\n" +
			"  paths: {collection: /others, item: '/others/{name}'}\n  schema: {openAPIV3Schema: " + schema + "}\n", "spec.schema.openAPIV3Schema." + rule},
		"an OpenAPI document": {"openapi: 3.0.3\ninfo: {title: Shop, version: v1}\npaths:\n  /others:\n    post:\n      operationId: create\n" +
			"      requestBody: {content: {application/json: {schema: " + schema +
			"}}}\n      responses: {'201': {description: Made}}\n",
			"paths[/others].post.requestBody.content[application/json].schema." + rule},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": reviewedDefinition, "b.yaml": c.text})
		_, found := Load([]string{dir})
		var got []string
		for _, f := range found {
			if strings.HasSuffix(f.File, "b.yaml") && f.Severity <= Warning {
				got = append(got, f.Rule+": "+f.String())
			}
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], "always-fails: ") ||
			!strings.Contains(got[0], ": "+c.field+": ERROR: <input>:1:") ||
			!strings.Contains(got[0], ": fails for every object: division by zero") {
			t.Errorf("%s: got\n%s", name, strings.Join(got, "\n"))
		}
	}
}
