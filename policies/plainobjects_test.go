package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// definitionOf is a CustomResourceDefinition of a kind.
func definitionOf(group, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\nspec:\n  group: " + group + "\n  scope: Cluster\n" +
		"  names: {plural: " + plural + ", singular: " + strings.ToLower(kind) + ", kind: " + kind + ", listKind: " +
		kind + "List}\n" +
		"  versions:\n  - name: v1beta1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {parameters: {type: object, " +
		"properties: {most: {type: integer, default: 2}}}}}}}}\n---\n"
}

// TestPlainObjects: a definition in the files makes the objects of its kind plain ones, whatever group they have,
// unless the gateway takes them for policies.
func TestPlainObjects(t *testing.T) {
	const group = "constraints.gatekeeper.sh"
	object := func(group, kind string) string {
		return "apiVersion: " + group + "/v1beta1\nkind: " + kind +
			"\nmetadata: {name: p}\nspec: {parameters: {}}\n---\n"
	}
	policy := func(group, kind string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: v}\nspec:\n  paramKind: {apiVersion: " + group + "/v1beta1, kind: " + kind + "}\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n" +
			"  validations: [{expression: 'size(object.spec.containers) <= params.spec.parameters.most', messageExpression: \"'at most ' + string(params.spec.parameters.most)\"}]\n---\n" +
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: v}\nspec: {policyName: v, validationActions: [Deny], paramRef: {name: p, parameterNotFoundAction: Deny}}\n---\n"
	}
	const missing = "a.yaml:2: kind: no ConstraintTemplate in the policy files defines the kind 'Most'"
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}, {name: b}, {name: c}]}}"
	for name, c := range map[string]struct{ files, found, verdict string }{
		"parameters in the group of constraints": {object(group, "Most") + definitionOf(group, "Most") +
			policy(group, "Most"), "",
			"ValidatingAdmissionPolicy 'v' with binding 'v' denied request: at most 2"},
		"parameters in another group of Gatekeeper's": {object("config.gatekeeper.sh", "Most") +
			definitionOf("config.gatekeeper.sh", "Most") + policy("config.gatekeeper.sh", "Most"), "",
			"ValidatingAdmissionPolicy 'v' with binding 'v' denied request: at most 2"},
		"parameters in our own group": {object("admission-gateway.io", "Most") +
			definitionOf("admission-gateway.io", "Most") + policy("admission-gateway.io", "Most"), "",
			"ValidatingAdmissionPolicy 'v' with binding 'v' denied request: at most 2"},
		"no definition": {object(group, "Most") + policy(group, "Most"), missing, ""},
		"a definition of another kind": {object(group, "Most") + definitionOf(group, "Other") + policy(group, "Most"),
			missing, ""},
		"nothing refers to it": {object(group, "Most") + definitionOf(group, "Most"),
			"a.yaml:2: kind: warning: is no constraint: a CustomResourceDefinition in the policy files defines the kind 'Most', and no ConstraintTemplate does", ""},
		"a template defines it too": {checkTemplate + constraintOf("Check", "c", "{parameters: {words: [c]}}") +
			"---\n" + definitionOf(group, "Check"), "", "[c] "},
		"a policy of the gateway": {"apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: p}\nspec: {}\n---\n" + definitionOf("admission-gateway.io", "ConventionPolicy"),
			"a.yaml:4: spec.checks: Required value", ""},
		"what Gatekeeper has and the gateway refuses": {object("expansion.gatekeeper.sh", "ExpansionTemplate") +
			definitionOf("expansion.gatekeeper.sh", "ExpansionTemplate"),
			"a.yaml:2: kind: must not be 'ExpansionTemplate': the gateway expands no objects that generate others: the pods of a workload are judged when they are created", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.files})
			set, found := Load([]string{dir})
			if got := text(dir, found); c.found == "" && got != "" || !strings.Contains(got, c.found) {
				t.Fatalf("found\n%s\nwant\n%s", got, c.found)
			}
			if c.verdict == "" {
				return
			}
			a := review(t, admission.Create, pod, "")
			if !strings.Contains(name, "template") {
				var files Referred
				files.Begin(t.Context(), set, nil, nil, a.Info, nil, time.Time{})
				a.Lookup = &files
			}
			if got := verdict(set, a); !strings.Contains(got, c.verdict) {
				t.Errorf("got %s, want %s", got, c.verdict)
			}
		})
	}
}
