package gatekeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/reader"
)

// regoTemplate is a template with a module and libraries.
func regoTemplate(module string, libs ...string) string {
	source, _ := json.Marshal(map[string]any{"rego": module, "libs": append([]string{}, libs...), "version": "v0"})
	return `{"apiVersion":"templates.gatekeeper.sh/v1","kind":"ConstraintTemplate","metadata":{"name":"tried"},"spec":{"crd":{"spec":{"names":{"kind":"Tried"}}},` +
		`"targets":[{"target":"admission.k8s.gatekeeper.sh","code":[{"engine":"Rego","source":` + string(source) + `}]}]}}`
}

// TestTemplates: templates are taken and refused as Gatekeeper does, by the same sentences.
func TestTemplates(t *testing.T) {
	const rule = "\nviolation[{\"msg\": \"no\"}] { input.review.object.x }\n"
	for name, c := range map[string]struct {
		template string
		refused  bool
	}{
		"plain": {regoTemplate("package a\n" + rule), false},
		"library": {regoTemplate("package a\nimport data.lib.b\n"+rule+"x { b.f(1) }",
			"package lib.b\nf(x) { x > 1 }"), false},
		"library of a library": {regoTemplate("package a\nimport data.lib.b\n"+rule+"x { b.f(1) }",
			"package lib.b\nimport data.lib.c.d\nf(x) { d.g(x) }", "package lib.c.d\ng(x) { x > 1 }"), false},
		"library by its reference": {regoTemplate("package a\n"+rule+"x { data.lib.b.f(1) }",
			"package lib.b\nf(x) { x > 1 }"), false},
		"library under its own name": {regoTemplate("package a\nimport data.lib.b as q\n"+rule+"x { q.f(1) }",
			"package lib.b\nf(x) { x > 1 }"), false},
		"the template is a library":    {regoTemplate("package lib.a\n" + rule), false},
		"library that is not there":    {regoTemplate("package a\nimport data.lib.b\n" + rule + "x { b.value }"), false},
		"library out of place":         {regoTemplate("package a\n"+rule, "package b\nf(x) { x > 1 }"), true},
		"library without a name":       {regoTemplate("package a\n"+rule, "package lib\nf(x) { x > 1 }"), true},
		"library with a longer prefix": {regoTemplate("package a\n"+rule, "package library.b\nf(x) { x > 1 }"), true},
		"inventory":                    {regoTemplate("package a\n" + rule + "x { data.inventory.cluster.v1.Namespace[_] }"), false},
		"inventory imported":           {regoTemplate("package a\nimport data.inventory\n" + rule), true},
		"inventory as a variable":      {regoTemplate("package a\n" + rule + "x { data[\"inventory\"].cluster }"), false},
		"inventory in a library": {regoTemplate("package a\n"+rule, "package lib.b\nf(x) { data.inventory[x] }"),
			false},
		"other data":              {regoTemplate("package a\n" + rule + "x { data.constraints[_] }"), true},
		"other data in a library": {regoTemplate("package a\n"+rule, "package lib.b\nf(x) { data.b[x] }"), true},
		"all data":                {regoTemplate("package a\n" + rule + "x { data[_] }"), true},
		"its own package":         {regoTemplate("package a\n" + rule + "x { data.a.y }\ny = 1"), true},
		"two references":          {regoTemplate("package a\n" + rule + "x { data.b.c }\ny { data.d[1] }"), true},
		"data in with":            {regoTemplate("package a\n" + rule + "x { y with data.b as 1 }\ny { input.a }"), true},
		"inventory in with": {
			regoTemplate("package a\n" + rule + "x { y with data.inventory as 1 }\ny { input.a }"), false},
		"input imported":        {regoTemplate("package a\nimport input.review\n" + rule), true},
		"input itself imported": {regoTemplate("package a\nimport input\n" + rule), true},
		"data imported":         {regoTemplate("package a\nimport data.b\n" + rule), true},
		"the future":            {regoTemplate("package a\nimport future.keywords.in\n" + rule), false},
		"the new language": {
			regoTemplate("package a\nimport rego.v1\nviolation contains {\"msg\": \"no\"} if input.x"), true},
		"no rule":               {regoTemplate("package a\ndeny[{\"msg\": \"no\"}] { input.x }"), true},
		"the rule in a library": {regoTemplate("package a\nx = 1", "package lib.b\n"+rule), true},
		"a function of nobody":  {regoTemplate("package a\n" + rule + "x { data.lib.b.f(1) }"), true},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := reader.ToTemplate(scheme, objectsOf(t, c.template)[0])
			if err == nil {
				_, err = newClient(t, false).AddTemplate(context.Background(), template)
			}
			if (err != nil) != c.refused {
				t.Fatalf("Gatekeeper says %v", err)
			}
			found := check(t, c.template)
			if len(found) == 0 != (err == nil) {
				t.Fatalf("the gateway says %q, Gatekeeper %v", found, err)
			}
			for _, message := range found {
				// Gatekeeper lists references below one sentence, and wraps what OPA's compiler says.
				_, rest, _ := strings.Cut(message, "invalid data references: ")
				if _, compiled, ok := strings.Cut(message, "rego_type_error: "); ok {
					rest = compiled[:strings.LastIndex(compiled, " ")]
				}
				if !strings.Contains(err.Error(), message) && (rest == "" || !strings.Contains(err.Error(), rest)) {
					t.Errorf("the gateway says %q, Gatekeeper %v", message, err)
				}
			}
		})
	}
}

// check returns the errors that gateway check finds in a file.
func check(t *testing.T, text string) (errors []string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "check", "-o", "json", name).Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	var all struct {
		Findings []struct{ Severity, Message string }
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range all.Findings {
		if f.Severity == "error" {
			errors = append(errors, strings.TrimPrefix(f.Message, "Invalid value: "))
		}
	}
	return errors
}

// TestConditions: match conditions of templates see the variables, as far as Gatekeeper's do.
func TestConditions(t *testing.T) {
	var objects, denied []string
	for i, condition := range []string{
		"variables.long", "!variables.long", "size(variables.anyObject.metadata.name) > 3", "variables.params.most < 2",
		"variables.named", "!variables.named",
		"variables.named == variables.long", "object.metadata.name.startsWith('long') && variables.long",
	} {
		quoted, _ := json.Marshal(condition)
		objects = append(objects, fmt.Sprintf(`{"apiVersion":"templates.gatekeeper.sh/v1","kind":"ConstraintTemplate","metadata":{"name":"tried%d"},"spec":{"crd":{"spec":{"names":{"kind":"Tried%d"},`+
			`"validation":{"openAPIV3Schema":{"type":"object","properties":{"most":{"type":"integer"}}}}}},`+
			`"targets":[{"target":"admission.k8s.gatekeeper.sh","code":[{"engine":"K8sNativeValidation","source":{`+
			`"variables":[{"name":"long","expression":"size(object.metadata.name) > 5"},{"name":"named","expression":"namespaceObject != null"}],`+
			`"matchCondition":[{"name":"c","expression":%s}],"validations":[{"expression":"false","messageExpression":"'named: ' + string(variables.named)"}]}}]}]}}`, i, i, quoted),
			fmt.Sprintf(`{"apiVersion":"constraints.gatekeeper.sh/v1beta1","kind":"Tried%d","metadata":{"name":"c%d"},"spec":{"parameters":{"most":%d}}}`, i, i, i%4))
	}
	c, files := newClient(t, true), map[string]string{}
	add(t, c, objectsOf(t, strings.Join(objects, "\n---\n")))
	for i, text := range objects {
		files[fmt.Sprintf("%d.json", i)] = text
	}
	g := start(t, files)
	addNamespaces(g)
	for _, name := range []string{"a", "long-name"} {
		q := requestAbout(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name}}, "CREATE")
		refused, warnings := ask(t, c, q)
		compare(t, q, g.send(t, q), refused, warnings)
		denied = append(denied, refused)
	}
	if denied[0] == denied[1] || slices.Contains(denied, "") {
		t.Errorf("the conditions make no difference: %q", denied)
	}
}

// TestRawParams: only variables see the whole constraint as params. What else reads it fails in Gatekeeper
// for every request, and is refused here when it is loaded.
func TestRawParams(t *testing.T) {
	const raw = "params.spec.parameters.most > 1"
	for name, c := range map[string]struct{ variable, condition, validation, message string }{
		"variable":   {raw, "variables.read", "false", "string(variables.read)"},
		"condition":  {"true", raw, "false", "'no'"},
		"validation": {"true", "true", raw, "'no'"},
		"message":    {"true", "true", "false", "string(" + raw + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			source, _ := json.Marshal(map[string]any{
				"variables":      []any{map[string]any{"name": "read", "expression": c.variable}},
				"matchCondition": []any{map[string]any{"name": "c", "expression": c.condition}},
				"validations": []any{map[string]any{"expression": c.validation, "message": "otherwise",
					"messageExpression": c.message}},
			})
			template := `{"apiVersion":"templates.gatekeeper.sh/v1","kind":"ConstraintTemplate","metadata":{"name":"tried"},"spec":{"crd":{"spec":{"names":{"kind":"Tried"},` +
				`"validation":{"openAPIV3Schema":{"type":"object","properties":{"most":{"type":"integer"}}}}}},` +
				`"targets":[{"target":"admission.k8s.gatekeeper.sh","code":[{"engine":"K8sNativeValidation","source":` + string(source) + `}]}]}}`
			constraint := `{"apiVersion":"constraints.gatekeeper.sh/v1beta1","kind":"Tried","metadata":{"name":"c"},"spec":{"parameters":{"most":2}}}`
			q := requestAbout(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a"}}, "CREATE")
			k := newClient(t, true)
			add(t, k, objectsOf(t, template+"\n---\n"+constraint))
			refused, warnings := ask(t, k, q)
			if name == "variable" {
				g := start(t, map[string]string{"0.json": template, "1.json": constraint})
				addNamespaces(g)
				compare(t, q, g.send(t, q), refused, warnings)
				return
			}
			if !strings.Contains(refused, "undeclared reference to 'params'") && name != "message" || refused == "" {
				t.Errorf("Gatekeeper says %q", refused)
			}
			if found := check(t, template); len(found) != 1 ||
				!strings.Contains(found[0], "must not read `params`, which only variables see") {
				t.Errorf("the gateway finds %q", found)
			}
		})
	}
}
