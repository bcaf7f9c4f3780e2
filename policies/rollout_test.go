package policies

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestRolloutsOfResources: what cannot apply is an error, and what takes policies with it is a warning. Resources of a
// document for which the same is said have one plan.
func TestRolloutsOfResources(t *testing.T) {
	document := func(root, path string) string {
		return "openapi: 3.1.0\ninfo: {title: Shop, version: '1'}\nx-admission-gateway-resource: " + root + "\npaths:\n  /as:\n    x-admission-gateway-resource: " + path + "\n" +
			"    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n  /bs:\n    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n"
	}
	const policy = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: [as]}]}\n" +
		"  validations: [{expression: 'true', message: must be}]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: p}\nspec: {policyName: p, validationActions: [Deny]}\n"
	for _, c := range []struct {
		name, files string
		want        []string
		plans       int
	}{
		{"one for a document", document("{rollout: {mode: Observe}}", "{}"), nil, 1},
		{"another one for a path", document("{rollout: {mode: Observe}}", "{rollout: {mode: Warn}}"), nil, 2},
		{"none for a path", document("{rollout: {mode: Observe}}", "{rollout: null}"), nil, 1},
		{"no such mode", document("{rollout: {mode: Deny}}", "{}"), []string{"f.yaml:3: x-admission-gateway-resource.rollout.mode: Unsupported value: \"Deny\": supported values: \"Observe\", \"Warn\""}, 0},
		{"labels of namespaces", document("{rollout: {namespaceSelector: {}}}", "{}"), []string{"f.yaml:3: x-admission-gateway-resource.rollout.namespaceSelector: Forbidden: must not be set: an ordinary API has no labels of namespaces"}, 0},
		{"namespaces of none", document("{rollout: {namespaces: [team-a]}}", "{}"), []string{"f.yaml:3: x-admission-gateway-resource.rollout.namespaces: must not be set: no path of the resource has {namespace}"}, 0},
		{"over", document("{rollout: {percent: 100}}", "{}"), []string{"f.yaml:3: x-admission-gateway-resource.rollout: warning: holds nothing back: the description is enforced for all requests"}, 1},
		{"a policy", document("{rollout: {mode: Observe}}", "{}") + policy,
			[]string{"f.yaml:3: x-admission-gateway-resource.rollout: warning: policies about 'as' are only tried with it: they refuse and change nothing for requests for which it is not enforced"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			testutil.WriteFile(t, "f.yaml", c.files)
			set, found := Load([]string{"f.yaml"})
			var got []string
			for _, f := range found {
				if text := f.String(); f.Severity <= Warning && !slices.Contains(got, text) {
					got = append(got, text)
				}
			}
			plans := 0
			if set != nil {
				plans = len(set.Terms().Rollouts)
			}
			if !slices.Equal(got, c.want) || plans != c.plans {
				t.Errorf("%d plans and %q\nwant %d and %q", plans, got, c.plans, c.want)
			}
		})
	}
}
