package exceptions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies"
)

// rego is a policy by the name of x; what is given stands in its metadata, and in its spec.
func rego(metadata, spec string) string {
	return `---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: x` + metadata + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [CREATE], resources: [pods]}]}
` + spec + `  rego: |
    package x
    deny contains "no" if false
`
}

// cel is a bound policy with an annotation, by the name of x.
func cel(annotation string) string {
	return `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: x, annotations: {admission-gateway.io/rollout: '` + annotation + `'}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.name != 'x'", message: must be 1}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: x}
spec: {policyName: x, validationActions: [Deny]}
`
}

// exception is one with the given members of its spec.
func exception(spec string) string {
	return `---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: e}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [CREATE], resources: [pods]}]}
` + spec
}

// TestFindings: what cannot be meant is found, with its line, and what cannot be read is refused.
func TestFindings(t *testing.T) {
	const named, until = "  policies: [{kind: RegoPolicy, names: [x]}]\n",
		"  reason: legacy\n  expires: \"2999-01-01T00:00:00Z\"\n"
	for _, c := range []struct{ name, files, want string }{
		{"all is well", rego("", "  rollout: {percent: 10}\n") + exception(named+until), ""},
		{"a rollout that says nothing", rego("", "  rollout: {}\n"),
			"a.yaml:6: spec.rollout: Invalid value: 0: must have at least 1 property"},
		{"a share beyond all", rego("", "  rollout: {percent: 101}\n"), "a.yaml:6: spec.rollout.percent: Invalid value: 101: must be less than or equal to 100"},
		{"a time without its zone", rego("", "  rollout: {warnUntil: \"2999-01-01T00:00:00\"}\n"), "a.yaml:6: spec.rollout.warnUntil: Invalid value: \"2999-01-01T00:00:00\": must be a valid 'date-time'"},
		{"a field that there is not", rego("", "  rollout: {percentage: 10}\n"),
			"a.yaml:6: spec.rollout.percentage: unknown field"},
		{"a rollout that is over", rego("", "  rollout: {warnUntil: \"2020-01-01T00:00:00Z\"}\n"), "a.yaml:6: spec.rollout: warning: the rollout is over since 2020-01-01T00:00:00Z: the policy is enforced everywhere"},
		{"a rollout to all", rego("", "  rollout: {percent: 100}\n"), "a.yaml:6: spec.rollout: warning: holds nothing back: the policy is enforced everywhere"},
		{"an annotation in place of the field", rego(`, annotations: {admission-gateway.io/rollout: '{"percent": 10}'}`,
			""),
			"a.yaml:3: metadata.annotations[admission-gateway.io/rollout]: must be the field `spec.rollout`, which the kind RegoPolicy has"},
		{"an annotation of an exception",
			strings.Replace(exception("  policies: [{kind: RegoPolicy, names: [x]}]\n"+until)+rego("", ""), "name: e",
				`name: e, annotations: {admission-gateway.io/rollout: '{}'}`, 1),
			"a.yaml:3: metadata.annotations[admission-gateway.io/rollout]: must not be set: a PolicyException cannot be rolled out"},
		{"an annotation that is well", cel(`{"percent": 10}`), ""},
		{"an annotation that is no JSON", cel(`percent: 10`), `a.yaml:3: metadata.annotations[admission-gateway.io/rollout]: must be a JSON object, such as {"percent": 10}`},
		{"an annotation with an unknown field", cel(`{"percentage": 10}`), `a.yaml:3: metadata.annotations[admission-gateway.io/rollout]: must be a JSON object: unknown field "percentage"`},
		{"an annotation with a bad value", cel(`{"percent": 200, "warnUntil": ""}`), "a.yaml:3: metadata.annotations[admission-gateway.io/rollout]: `percent`: Invalid value: 200: must be from 0 to 100"},
		{"an exception that never ends", rego("", "") + exception(named+"  reason: legacy\n"), "a.yaml:13: spec.expires: warning: must be set for an exception that is to end: this one never does"},
		{"an exception that ended", rego("", "") + exception(named+"  reason: legacy\n  expires: \"2020-01-01T00:00:00Z\"\n"), "a.yaml:17: spec.expires: warning: the exception ended at 2020-01-01T00:00:00Z, and has no effect"},
		{"an exception without a reason",
			rego("", "") + exception(named+"  reason: \" \"\n  expires: \"2999-01-01T00:00:00Z\"\n"),
			"a.yaml:16: spec.reason: Required value: must say why the requests may pass"},
		{"an exception of nothing", exception(named + until), "a.yaml:6: spec.policies[0].names[0]: warning: no RegoPolicy in the policy files has the name 'x', so that the exception does nothing for it"},
		{"an exception of a limit", exception("  policies: [{kind: RateLimitPolicy, names: [x]}]\n" + until), "a.yaml:6: spec.policies[0].kind: must not be 'RateLimitPolicy': its own `spec.exemptions` say whom it does not count"},
		{"an exception of a schema", exception("  policies: [{kind: APIResource, names: [x]}]\n" + until), "a.yaml:6: spec.policies[0].kind: must not be 'APIResource': what a schema, the protection of the status or the contract of an API refuses has no exceptions"},
		{"an exception whose condition is wrong",
			rego("", "") + exception(named+until+"  matchConditions: [{name: c, expression: object.}]\n"),
			"a.yaml:18: spec.matchConditions[0].expression: Invalid value: \"object.\": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.' | object. | .......^"},
		{"a limit by labels", `---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: x}
spec: {match: {}, requests: 1, periodSeconds: 1, rollout: {namespaceSelector: {}}}
`, "a.yaml:4: spec.rollout.namespaceSelector: must not be set: limits are held before anything is asked about a namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "a.yaml")
			if err := os.WriteFile(file, []byte(strings.TrimPrefix(c.files, "---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range policies.Check([]string{file}) {
				found = append(found, strings.ReplaceAll(f.String(), dir+"/", ""))
			}
			if got := strings.Join(found, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
