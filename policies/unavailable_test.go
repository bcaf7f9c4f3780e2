package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/lint"
)

// A variable that other expressions may read is no misspelling of itself: the finding says why this one may not.
func TestUnavailableVariables(t *testing.T) {
	policy := func(spec string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
` + spec
	}
	rule := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: "EXPRESSION"}]}}}}
`
	for text, want := range map[string]string{
		policy(`  validations: [{expression: "true", messageExpression: "authorizer.group('').resource('pods').check('get').reason()"}]`): "the variable 'authorizer' is not available here: a message may not depend on the authorizer, as in Kubernetes",
		policy(
			`  validations: [{expression: "params.data == null"}]`): "the variable 'params' is not available here: the policy has no `paramKind`",
		policy(`  validations: [{expression: "variables.a == null"}]`): "the schema has no field 'a'",
		policy("  variables: [{name: a, expression: '1'}]\n  matchConditions: [{name: a, expression: variables.a == 1}]\n" +
			"  validations: [{expression: 'true'}]"): "the variable 'variables' is not available here: match conditions are evaluated before variables are",
		policy(`  validations: [{expression: "self.spec == null"}]`): "the variable 'self' is not available here: it is for rules of schemas; policies read `object` and `oldObject`",
		policy(
			`  validations: [{expression: "objekt.spec == null"}]`): "there is no variable 'objekt'; did you mean `object`?",
		strings.Replace(rule, "EXPRESSION", "request.userInfo.username == 'a'", 1):            "the variable 'request' is not available here: rules of schemas read `self` and `oldSelf`, and nothing of the request",
		strings.Replace(rule, "EXPRESSION", "object.metadata.name == 'a' && self == self", 1): "the variable 'object' is not available here: rules of schemas read `self` and `oldSelf`, and nothing of the request",
	} {
		found := lint.Refine(Check([]string{testutil.WriteFiles(t, map[string]string{"p.yaml": text})}), nil)
		var got []string
		for _, f := range found {
			got = append(got, f.Message)
		}
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
