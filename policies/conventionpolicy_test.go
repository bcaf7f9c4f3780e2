package policies

import (
	"os"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestConventionPolicy: the example of its page is in force for what it says.
func TestConventionPolicy(t *testing.T) {
	page, err := os.ReadFile("../docs/policies/conventionpolicy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page),
		"\napiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\n")
	example, _, _ = strings.Cut(example, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	set, findings := Load(
		[]string{testutil.WriteFiles(t,
			map[string]string{"a.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\n" +
				example})})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for _, c := range []struct {
		subresource string
		operation   admission.Operation
		want        bool
	}{{"", admission.Create, true}, {"status", admission.Update, true}, {"", admission.Delete, false}} {
		info := &resource.Info{Group: "example.com", Resource: "widgets", Subresource: c.subresource}
		if got := set.Conventions().Concern(info, c.operation); got != c.want {
			t.Errorf("%q, %v: %v", c.subresource, c.operation, got)
		}
	}
	if empty().Conventions() != nil {
		t.Error("an empty set has conventions")
	}
}

// TestConventionPolicyFindings: what is wrong with one is said with its line.
func TestConventionPolicyFindings(t *testing.T) {
	head := "apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: a}\nspec:\n"
	for _, c := range []struct{ name, spec, want string }{
		{"nothing", "  checks: {}", "a.yaml:5: spec.checks: warning: every check is 'Off', so that the policy does nothing"},
		{"no checks", "  matchConditions: []", "a.yaml:4: spec.checks: Required value"},
		{"unknown check", "  checks:\n    condition: Deny",
			"a.yaml:6: spec.checks.condition: unknown field; did you mean `conditions`?"},
		{"unknown action", "  checks:\n    dates: deny", `a.yaml:6: spec.checks.dates: Unsupported value: "deny": supported values: "Off", "Warn", "Deny"`},
		{"rules", "  checks: {dates: Deny}\n  matchConstraints:\n    resourceRules:\n    - apiGroups: [\"\"]\n      apiVersions: [v1]\n      operations: [PATCH]\n      resources: [pods]",
			`a.yaml:10: spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`},
		{"unknown field of rules", "  checks: {dates: Deny}\n  matchConstraints: {resourceRule: []}", "a.yaml:6: spec.matchConstraints.resourceRule: unknown field; did you mean `resourceRules`?"},
		{"condition", "  checks: {dates: Deny}\n  matchConditions:\n  - {name: x, expression: '1'}", `a.yaml:7: spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": head + c.spec})
			for _, f := range Check([]string{dir}) {
				got = append(got, strings.TrimPrefix(f.String(), dir+"/"))
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("\n got %s\nwant %s", text, c.want)
			}
		})
	}
}
