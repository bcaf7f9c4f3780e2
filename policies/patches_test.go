package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestIDsOfFields: what names a field that the objects lack, or sets one to a value that it cannot hold, is found by a
// check with an id, in each kind of policy.
func TestIDsOfFields(t *testing.T) {
	const widgets = "{resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}\n"
	all := strings.NewReplacer("example.com", "'*'", "v1", "'*'", "widgets", "'*'").Replace(widgets)
	mutating := func(mutation string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: m}\nspec:\n  matchConstraints: " + widgets +
			"  reinvocationPolicy: Never\n  mutations:\n  - " + mutation + "\n---\n" +
			"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: m}\nspec: {policyName: m}\n"
	}
	patch := func(patch string) string {
		return mutating(`{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{` + patch + `}]"}}`)
	}
	assign := func(location, value string) string {
		return "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: a}\nspec:\n" +
			"  applyTo: [{groups: [example.com], versions: [v1], kinds: [Widget]}]\n  location: " + location +
			"\n  parameters: {assign: {value: " + value + "}}\n"
	}
	validating := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: v}\nspec:\n  matchConstraints: " + all +
		"  validations: [{expression: object.spec.sise > 1}]\n---\n" +
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: v}\nspec: {policyName: v, validationActions: [Deny]}\n"
	const unknown, unfit = "unknown-field: ", "unfit-value: "
	for name, c := range map[string]struct{ policy, want string }{
		"a patch without an operation": {patch("op: 'ad', path: '/spec/size', value: 1"),
			"always-fails: spec.mutations[0].jsonPatch.expression"},
		"the path of a patch": {patch("op: 'remove', path: '/spec/sise'"),
			unknown + "spec.mutations[0].jsonPatch.expression"},
		"the path of an added value": {patch("op: 'add', path: '/spec/sise', value: 1"),
			unknown + "spec.mutations[0].jsonPatch.expression"},
		"the value of a patch": {patch("op: 'add', path: '/spec/size', value: 0"),
			unfit + "spec.mutations[0].jsonPatch.expression"},
		"an apply configuration": {
			mutating(`{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{size: 0}}"}}`),
			unfit + "spec.mutations[0].applyConfiguration.expression"},
		"the location of an Assign":  {assign("spec.sise", "1"), unknown + "spec.location"},
		"the value of an Assign":     {assign("spec.size", "0"), unfit + "spec.parameters.assign.value"},
		"an expression for any kind": {validating, unknown + "spec.validations[0].expression"},
		"the field of a default": {defaulting("d", "  - {field: spec.sise, value: 1}\n"),
			unknown + "spec.defaults[0].field"},
		"the value of a default": {defaulting("d", "  - {field: spec.size, value: 0}\n"),
			unfit + "spec.defaults[0].value"},
		"the expression of a default": {defaulting("d", "  - {field: spec.size, valueExpression: \"'a'\"}\n"),
			unfit + "spec.defaults[0].valueExpression"},
		"the field of a default for any kind": {
			strings.Replace(defaulting("d", "  - {field: spec.sise, value: 1}\n"),
				"apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]",
				"apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*']", 1),
			unknown + "spec.defaults[0].field"},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": defaultedDefinition, "b.yaml": c.policy})
		_, found := CompileFor(source.Read([]string{dir}, &source.Progress{}),
			Gateway{Routes: []Route{{PathPrefix: "/"}}})
		var got []string
		for _, f := range found {
			if strings.HasSuffix(f.File, "b.yaml") && f.Severity <= Warning {
				got = append(got, f.Rule+": "+f.Field)
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s\n%s", name, strings.Join(got, "\n"), c.want, text(dir, found))
		}
	}
}
