package policies

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

// inlinePolicy is a RegoPolicy with a module in its lines 6 and below; more is further fields.
func inlinePolicy(more, module string) string {
	spec := strings.TrimSuffix(strings.TrimPrefix(regoPolicyOf("p", ""), "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: p}\nspec: {"), "}\n")
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: p}\nspec:\n  " + spec + "\n" + more +
		"  rego: |\n    " + strings.ReplaceAll(module, "\n", "\n    ") + "\n"
}

// TestRegoFindings: errors in a module have their position.
func TestRegoFindings(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a module in a policy",
			map[string]string{"p.yaml": inlinePolicy("", "package p\ndeny contains msg if {\n\tinput.review.name\n}")},
			"" +
				"p.yaml:8:19: rego_unsafe_var_error: var msg is unsafe\n" +
				"    deny contains msg if {\n" +
				"                  ^\n"},
		{"a module in one line of a policy",
			map[string]string{"p.yaml": regoPolicyOf("p",
				"{rego: 'package p deny contains msg if input.review.name'}")}, "" +
				"p.yaml:4: rego_unsafe_var_error: var msg is unsafe\n"},
		{"a module in a file", map[string]string{"p.yaml": regoPolicyOf("p", ""),
			"a.rego": "package p\r\n\r\ndeny contains \"no\" if {\r\n\tx := 1\r\n}\r\n"}, "" +
			"a.rego:4:2: warning: rego_compile_error: assigned var x unused\n" +
			"    x := 1\n" +
			"    ^\n"},
		{"Rego before OPA 1.0", map[string]string{"p.yaml": regoPolicyOf("p", ""),
			"a.rego": "package p\n\ndeny[msg] {\n\tmsg := input.review.name\n}\n"}, "" +
			"a.rego:3:1: rego_parse_error: `if` keyword is required before rule body; this is Rego before OPA 1.0: set `regoVersion: V0`\n" +
			"    deny[msg] {\n" +
			"    ^\n"},
		{"Rego since OPA 1.0", map[string]string{"p.yaml": regoPolicyOf("p", "{regoVersion: V0}"),
			"a.rego": "package p\n\ndeny contains msg if msg := input.review.name\n"}, "" +
			"a.rego:3:1: rego_parse_error: var cannot be used for rule name (hint: `import future.keywords.contains` for `p contains x` rules); this is Rego since OPA 1.0: leave out `regoVersion: V0`\n" +
			"    deny contains msg if msg := input.review.name\n" +
			"    ^\n"},
		{"Rego since OPA 1.0 in a template",
			map[string]string{"t.yaml": strings.NewReplacer("violation[{\"msg\": msg}] {",
				"violation contains {\"msg\": msg} if {").Replace(checkTemplate)}, "" +
				"t.yaml:20:32: spec.targets[0].rego: rego_parse_error: unexpected : token: expected \\n or ; or }; violation contains {\"msg\": msg} if { msg := said(input.review.object) }; " +
				"this is Rego since OPA 1.0: set `version: v1` in the `source` of `code`\n" +
				"    violation contains {\"msg\": msg} if { msg := said(input.review.object) }\n" +
				"                             ^\n"},
		{"Rego that is wrong in every version",
			map[string]string{"p.yaml": regoPolicyOf("p", ""),
				"a.rego": "package p\n\ndeny contains msg if {\n\tmsg := := 1\n}\n"}, "" +
				"a.rego:4:9: rego_parse_error: unexpected assign token; msg := := 1\n" +
				"    msg := := 1\n" +
				"           ^\n"},
		{"what the input never has", map[string]string{"p.yaml": inlinePolicy("", "package p\nimport input.object as o\ndeny contains \"a\" if input.kind == \"Order\"\n"+
			"deny contains \"b\" if o.x\ndeny contains \"c\" if input.review.objct.x == input.request.object.x\ndeny contains \"d\" if input[input.review.name].x")}, "" +
			"p.yaml:9:26: warning: 'input.kind' has no value: the input of a RegoPolicy has review, parameters, http, request, attributes, parsed_path, parsed_query, parsed_body, truncated_body; the object is in input.review.object\n" +
			"    deny contains \"a\" if input.kind == \"Order\"\n" +
			"                         ^\n" +
			"p.yaml:10:26: warning: 'input.object' has no value: the input of a RegoPolicy has review, parameters, http, request, attributes, parsed_path, parsed_query, parsed_body, truncated_body; the object is in input.review.object\n" +
			"    deny contains \"b\" if o.x\n" +
			"                         ^\n" +
			"p.yaml:11:26: warning: 'input.review.objct' has no value: input.review has kind, resource, subResource, requestKind, requestResource, requestSubResource, name, namespace, operation, userInfo, object, oldObject, dryRun, options\n" +
			"    deny contains \"c\" if input.review.objct.x == input.request.object.x\n" +
			"                         ^\n"},
		{"an input of their own", map[string]string{"p.yaml": inlinePolicy("", "package p\ndeny contains \"a\" if input.kind == \"Order\"\nwarn contains m if some m in deny with input as input.review.object")}, ""},
		{"data that nothing defines", map[string]string{"p.yaml": regoPolicyOf("p", "{package: a}"),
			"data.json": `{"words": {"bad": []}}`,
			"a.rego":    "package a\n\nimport data.lib.names\n\ndeny contains \"a\" if data.word[_] == \"a\"\ndeny contains \"b\" if data.words.good[_] == names.one\ndeny contains \"c\" if names.on[_].x\ndeny contains \"d\" if data[input.review.name].x\n",
			"b.rego":    "package lib.names\n\none := input.review.name\n"}, "" +
			"a.rego:5:22: warning: 'data.word' has no value: no module and no data file defines it\n" +
			"    deny contains \"a\" if data.word[_] == \"a\"\n" +
			"                         ^\n" +
			"a.rego:7:22: warning: 'data.lib.names.on' has no value: no module and no data file defines it\n" +
			"    deny contains \"c\" if names.on[_].x\n" +
			"                         ^\n"},
		{"what the input of a template never has",
			map[string]string{"t.yaml": strings.NewReplacer("input.review.object)", "input.object)",
				"input.parameters.words[_]", "input.review.namespaceObject.x").Replace(checkTemplate) +
				constraintOf("Check", "c", "{}")}, "" +
				"t.yaml:20:45: warning: 'input.object' has no value: the input of a template has review, parameters; the object is in input.review.object\n" +
				"    violation[{\"msg\": msg}] { msg := said(input.object) }\n" +
				"                                          ^\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, test.files)
			var got bytes.Buffer
			if err := finding.Write(&got, finding.Text, Check([]string{dir}), nil); err != nil {
				t.Fatal(err)
			}
			if text := strings.ReplaceAll(got.String(), dir+"/", ""); text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}

// TestFailOpenRules: check names each rule that a lenient policy, or template, may leave without a value.
func TestFailOpenRules(t *testing.T) {
	const text = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: numbers}
spec:
  builtinErrors: Undefined
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  rego: |
    package p

    deny contains "large" if to_number(input.review.object.spec.n) > 1

    deny contains "small" if input.review.object.spec.n == 0
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: numbers, annotations: {admission-gateway.io/builtin-errors: Undefined}}
spec:
  crd: {spec: {names: {kind: Numbers}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package numbers
      violation[{"msg": "no"}] { regex.match(input.parameters.pattern, input.review.object.metadata.name) }
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: strict, annotations: {admission-gateway.io/builtin-errors: Sometimes}}
spec:
  crd: {spec: {names: {kind: Strict}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package strict
      violation[{"msg": "no"}] { to_number("a") }
`
	name := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range Check([]string{name}) {
		if strings.Contains(f.Message, "fail-open") || strings.Contains(f.Message, "Sometimes") ||
			strings.Contains(f.Field, "builtin-errors") {
			got = append(got, fmt.Sprintf("%d: %s: %s", f.Line, f.Field, f.Message))
		}
	}
	want := []string{
		`27: metadata.annotations[admission-gateway.io/builtin-errors]: Unsupported value: "Sometimes": supported values: "Error", "Undefined"`,
		"10: : fail-open: an error of 'to_number' counts as undefined here, so that a request may pass that the rule would refuse",
		"23: : fail-open: an error of 'regex.match' counts as undefined here, so that a request may pass that the rule would refuse",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
