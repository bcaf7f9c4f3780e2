package policytest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestGatorAssertions: every assertion of gator's counts, over the violations whose messages match.
func TestGatorAssertions(t *testing.T) {
	files := map[string]string{
		"template.yaml": `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: flaws}
spec:
  crd: {spec: {names: {kind: Flaws}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package flaws
      violation[{"msg": msg}] { msg := input.review.object.metadata.annotations[_] }
      violation[{"msg": "same", "details": {"label": name}}] { input.review.object.metadata.labels[name] }
`,
		"constraint.yaml": "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Flaws\nmetadata: {name: flaws}\n",
		"object.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: none, annotations: {a: first, b: second a, c: second b}}\n",
		"two.yaml":        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
		"labelled.yaml":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {a: x, b: x}}\n",
		"good.yaml":       "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
	}
	for _, test := range []struct {
		object, assertions string
		want               string // the problems
	}{
		{"object@dryrun", `[{violations: 3}, {message: "^first$", violations: 1}]`, "[]"},
		{"object@warn", `[{violations: 3}, {message: "^first$", violations: 1}]`, "[]"},
		{"object@dryrun", `[{violations: no}]`, "want 0"},
		{"object@warn", `[{violations: no}]`, "want 0"},
		{"object", `[{violations: 3}]`, "[]"},
		{"object", `[{violations: yes}, {message: "^.*first$", violations: 1}, {message: second, violations: 2}]`, "[]"},
		{"object", `[{message: third, violations: no}, {message: 'second [ab]'}]`, "[]"},
		{"labelled", `[{violations: 2}, {message: same, violations: 2}]`, "[]"},
		{"labelled", `[{violations: 1}]`, "has 2 violations, want 1"},
		{"object", `[]`, "must have at least one assertion"},
		{"good", `[]`, "must have at least one assertion"},
		{"object", `[{violations: "3"}]`, "must be a number, 'yes' or 'no', not the text '3'"},
		{"object", `[{violations: -1}]`, "want -1"},
		{"two", `[{violations: no}]`, "must have one object, not 2"},
		{"none", `[{violations: no}]`, "none.yaml"},
		{"good", `[{violations: no}, {violations: 0}]`, "[]"},
		{"good", `[{message: first}]`, `[has 0 violations that match "first", want at least 1; it has []]`},
		{"object", `[{violations: 99}, {violations: 3}]`, "want 99"},
		{"object", `[{violations: 3}, {violations: no}]`, "want 0"},
		{"object", `[{message: second, violations: 3}]`, `has 2 violations that match "second", want 3`},
	} {
		object, action, _ := strings.Cut(test.object, "@")
		files["constraint.yaml"] = fmt.Sprintf("apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Flaws\nmetadata: {name: flaws}\nspec: {enforcementAction: %s}\n", cmp.Or(action, "deny"))
		files["suite.yaml"] = fmt.Sprintf(`kind: Suite
apiVersion: test.gatekeeper.sh/v1alpha1
tests:
- {name: flaws, template: template.yaml, constraint: constraint.yaml, cases: [{name: one, object: %s.yaml, assertions: %s}]}
`, object, test.assertions)
		s, err := Run(context.Background(), Options{Paths: []string{testutil.WriteFiles(t, files)}})
		if err != nil || len(s.Results) != 1 {
			t.Fatal(s, err)
		}
		got := fmt.Sprint(s.Results[0].Problems)
		if isRight := test.want == "[]"; isRight != (got == "[]") || !hasText(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.assertions, got, test.want)
		}
	}
}

// TestGatorInvalid: a constraint is invalid by the values of its fields, and not by fields that there are not.
func TestGatorInvalid(t *testing.T) {
	files := map[string]string{
		"template.yaml": `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: flaws}
spec:
  crd: {spec: {names: {kind: Flaws}, validation: {openAPIV3Schema: {type: object, properties: {prefix: {type: string}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package flaws
      violation[{"msg": msg}] { msg := input.parameters.prefix }
`,
		"suite.yaml": `kind: Suite
apiVersion: test.gatekeeper.sh/v1alpha1
tests: [{name: flaws, template: template.yaml, constraint: constraint.yaml, invalid: true}]
`,
	}
	for _, test := range []struct{ parameters, want string }{
		{"{prefix: 5}", "[]"},
		{"{prefix: a}", "must be invalid, and is not"},
		{"{sufix: a}", "has a field that the schema does not have"},
	} {
		files["constraint.yaml"] = "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Flaws\nmetadata: {name: flaws}\nspec: {parameters: " + test.parameters + "}\n"
		s, err := Run(context.Background(), Options{Paths: []string{testutil.WriteFiles(t, files)}})
		if err != nil || len(s.Results) != 1 {
			t.Fatal(s, err)
		}
		got := fmt.Sprint(s.Results[0].Problems)
		if isRight := test.want == "[]"; isRight != (got == "[]") || !hasText(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.parameters, got, test.want)
		}
	}
}
