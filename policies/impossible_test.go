package policies

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestAlwaysFailing: a rule that the types of the matched kinds, or constants, prove to fail for every object is an
// error of the load, in each kind of policy. What they do not prove is left unsaid.
func TestAlwaysFailing(t *testing.T) {
	const (
		match    = "  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}\n"
		wider    = "  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [\"*\"]}]}\n"
		rego     = "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: p}\nspec:\n"
		defaults = "apiVersion: admission-gateway.io/v1alpha1\nkind: DefaultingPolicy\nmetadata: {name: p}\nspec:\n" + match + "  defaults:\n"
		module   = "  rego: |\n    package policy\n"
		template = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: sizes}
spec:
  crd: {spec: {names: {kind: Sizes}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package sizes
`
		constraint = "---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Sizes\nmetadata: {name: s}\nspec: {match: {kinds: [{apiGroups: [example.com], kinds: [Widget]}]}}\n"
	)
	for _, c := range []struct{ name, text, want string }{
		{"rego", rego + match + module + "    deny contains \"x\" if input.review.object.spec.size > 3\n", ""},
		{"rego, a field that no object has", rego + match + module + "    deny contains \"x\" if input.review.object.spec.sise > 3\n", "b.yaml:8: 'deny' can never have a value here, whatever the object: undefined ref: input.review.object.spec.sise"},
		{"rego, one rule of two", rego + match + module + "    deny contains \"x\" if input.review.object.spec.sise > 3\n    deny contains \"y\" if input.review.object.spec.size > 3\n", "b.yaml:8: 'deny' can never have a value here"},
		{"rego, for several kinds", rego + match + module + "    deny contains \"x\" if { input.review.kind.kind == \"Other\"; input.review.object.spec.sise > 3 }\n    deny contains \"y\" if input.review.object.spec.size > 3\n", ""},
		{"rego, with wildcards", rego + wider + module +
			"    deny contains \"x\" if input.review.object.spec.sise > 3\n", ""},
		{"rego, a constant", rego + match + module + "    deny contains \"x\" if input.review.object.spec.size > 1 / 0\n", "b.yaml:8: always fails, since it depends on no object: eval_builtin_error: div: divide by zero"},
		{"defaults", defaults + "  - {field: spec.list, valueExpression: \"[object.spec.size]\", when: object.spec.size < 5}\n", ""},
		{"defaults, a condition of other types",
			defaults + "  - {field: spec.size, value: 3, when: \"object.spec.size < '5'\"}\n",
			"b.yaml:7: spec.defaults[0].when: ERROR: <input>:1:18: fails for every object"},
		{"defaults, a constant", defaults + "  - {field: spec.size, valueExpression: \"1 / 0\"}\n", "b.yaml:7: spec.defaults[0].valueExpression: always fails, since it depends on no object: division by zero"},
		{"defaults, for several kinds", strings.Replace(defaults, "[widgets]", "[widgets, others]", 1) +
			"  - {field: spec.size, value: 3, when: \"object.spec.size < '5'\"}\n", ""},
		{"a template", template + "      violation[{\"msg\": \"x\"}] { input.review.object.spec.size > 3 }\n" +
			constraint, ""},
		{"a template, a field that no object has", template + "      violation[{\"msg\": \"x\"}] { input.review.object.spec.sise > 3 }\n" + constraint, "b.yaml:15: spec.match.kinds: matches objects in which the template can never find anything: 'violation' can never have a value here"},
		{"a template for several kinds", template + "      violation[{\"msg\": \"x\"}] { input.review.object.spec.sise > 3 }\n      violation[{\"msg\": \"y\"}] { input.review.object.spec.size > 3 }\n" + constraint, ""},
		{"a template, a constant",
			template + "      violation[{\"msg\": \"x\"}] { input.review.object.spec.size > 1 / 0 }\n" + constraint,
			"b.yaml:10: always fails, since it depends on no object"},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": reviewedDefinition, "b.yaml": c.text})
		set, found := Load([]string{dir})
		var got []string
		for _, line := range strings.Split(text(dir, found), "\n") {
			if strings.HasPrefix(line, "b.yaml") && !strings.Contains(line, ": warning: ") {
				got = append(got, line)
			}
		}
		switch all := strings.Join(got, "\n"); {
		case c.want == "" && (len(got) > 0 || set == nil):
			t.Errorf("%s: got %s\n%s", c.name, all, text(dir, found))
		case c.want != "" && (len(got) != 1 || !strings.HasPrefix(all, c.want) || set != nil):
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, text(dir, found), c.want)
		}
	}
}

// TestImpossibleInLibrary: a template of Gatekeeper's library that found something in an object of a kind is not proved
// to find nothing in objects of that kind.
func TestImpossibleInLibrary(t *testing.T) {
	root := suitesDir(t)
	f, err := os.Open(filepath.Join(root, "cases", "rego-gatekeeper.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	type pair struct {
		files string
		kind  schema.GroupVersionKind
	}
	seen := map[pair]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c gatekeeperCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		kind := c.Input.Review.Kind
		one := pair{strings.Join(c.PolicyFiles, " "), schema.GroupVersionKind{Group: kind.Group, Version: kind.Version,
			Kind: kind.Kind}}
		if len(c.Expect.Violations) == 0 || seen[one] {
			continue
		}
		var files []string
		for _, name := range c.PolicyFiles {
			files = append(files, filepath.Join(root, name))
		}
		l := newLoader(&Gateway{})
		l.load(source.Read(files, &source.Progress{}))
		known, ok := l.knownKinds().native(one.kind)
		if !ok {
			continue
		}
		seen[one] = true
		for o, template := range part[gatekeeperFiles](l).files.InRego() {
			if errs := template.Modules().Impossible(known.Type.JSONSchema(), false, template.Rule()); len(errs) > 0 {
				t.Errorf("%s: %s: %v", c.ID, o.Name, errs)
			}
		}
	}
	if t.Logf("%d templates and kinds", len(seen)); len(seen) < 20 {
		t.Error("there are too few")
	}
}
