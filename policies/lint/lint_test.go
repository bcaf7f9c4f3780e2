package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestOwnDefinitions: the definitions of the gateway's own kinds keep to what it asks of others.
func TestOwnDefinitions(t *testing.T) {
	const file = "../.gateway-lint.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	exceptions, err := ReadExceptions(file, data)
	if err != nil {
		t.Fatal(err)
	}
	read := source.Read([]string{"../crds"}, &source.Progress{})
	for _, f := range Except(Of(read.Files), exceptions, file) {
		t.Error(f)
	}
}

// crd returns a definition with some members of the spec, each in a line of its own.
func crd(spec string) []source.File {
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [must]
            properties:
              must: {type: string}
              ` + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n              ") + "\n"
	return []source.File{{Name: "a.yaml", Data: []byte(text)}}
}

func rulesIn(found []finding.Finding) string {
	var ids []string
	for _, f := range found {
		ids = append(ids, f.Rule)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// TestRules: each member breaks the rules that stand behind it, and the ones that keep to the conventions break none.
func TestRules(t *testing.T) {
	for member, want := range map[string]string{
		"size: {type: integer, minimum: 1, maximum: 5}":                             "",
		"podIPs: {type: array, x-kubernetes-list-type: set, items: {type: string}}": "",
		"clientID: {type: string}":                                                  "",
		"timeoutSeconds: {type: integer, minimum: 1, maximum: 5}":                   "",
		"mode: {type: string, enum: [Fast, Safe]}":                                  "",
		"secretRef: {type: object, properties: {name: {type: string}}}":             "",
		"Size: {type: string}":                                                      "LINT-2/field-name",
		"max_size: {type: string}":                                                  "LINT-2/field-name",
		"baseUrl: {type: string}":                                                   "LINT-2/acronym",
		"podIp: {type: string}":                                                     "LINT-2/acronym",
		"createBucket: {type: string}":                                              "LINT-2/imperative",
		"isPaused: {type: boolean}":                                                 "LINT-2/is LINT-4/boolean",
		"startTimestamp: {type: string}":                                            "LINT-2/stamp",
		"imgName: {type: string}":                                                   "LINT-2/abbreviation",
		"timeout: {type: integer, minimum: 1, maximum: 5}":                          "LINT-3/duration",
		"idleTimeout: {type: string}":                                               "LINT-3/duration",
		"intervalSeconds: {type: integer, minimum: 1, maximum: 5}":                  "LINT-3/period",
		"ttlMinutes: {type: integer, minimum: 1, maximum: 5}":                       "LINT-3/duration",
		"ratio: {type: number}":                                                     "LINT-4/float",
		"count: {type: integer, format: uint32}":                                    "LINT-4/unsigned",
		"count: {type: integer}":                                                    "LINT-4/bounds",
		"mode: {type: string, enum: [fast, Safe]}":                                  "LINT-5/enum",
		"ports: {type: array, items: {type: string}}":                               "LINT-6/list-type",
		"ports: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}":              "LINT-6/map",
		"secret: {type: object, properties: {kind: {type: string}, group: {type: string}, name: {type: string}}}":   "LINT-7/name",
		"secretRef: {type: object, properties: {name: {type: string}, namespace: {type: string}}}":                  "LINT-7/namespace",
		"ownerRef: {type: object, properties: {name: {type: string}, kind: {type: string}}}":                        "LINT-7/group",
		"size: {type: string, default: x, x-kubernetes-validations: [{rule: 'true', message: size should be set}]}": "LINT-9/message",
	} {
		if got := rulesIn(Of(crd(member))); got != want {
			t.Errorf("%s\n\tbreaks %q, want %q", member, got, want)
		}
	}
}

// Names of a definition, and of what belongs to the whole object.
func TestDefinitions(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"kind: Widget,", "kind: widget,", "LINT-1/kind"},
		{"kind: Widget,", "kind: WidgetController,", "LINT-2/controller"},
		{"plural: widgets", "plural: Widgets", "LINT-1/resource"},
		{"plural: widgets", "plural: widget", "LINT-1/resource"},
		{"group: example.com", "group: Example.com", "LINT-1/group"},
		{"name: v1\n", "name: V1\n", "LINT-1/group"},
		{"required: [must]", "required: [must, size]", "LINT-8/required-default"},
		{"          spec:", "          items: {type: string}\n          spec:", "LINT-8/items"},
		{"          spec:", "          status: {type: object, properties: {phase: {type: string}}}\n          spec:", "LINT-8/phase"},
		{"          spec:", "          status: {type: object, properties: {conditions: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}}\n          spec:", "LINT-8/conditions"},
		{"    subresources: {status: {}}\n", "", ""},
		{"name: widgets.example.com", "name: widgets.example.com, labels: {CamelCase: a}", "LINT-10/key"},
		{"name: widgets.example.com", "name: widgets.example.com, labels: {kubernetes.io/mine: a}", "LINT-10/key"},
		{"name: widgets.example.com", "name: widgets.example.com, labels: {example.com/my-key: a}", ""},
	} {
		files := crd("size: {type: string, default: x}")
		text := strings.Replace(string(files[0].Data), c.from, c.to, 1)
		if text == string(files[0].Data) {
			t.Fatalf("%q is not in the definition", c.from)
		}
		files[0].Data = []byte(text)
		if got := rulesIn(Of(files)); got != c.want {
			t.Errorf("%s: breaks %q, want %q", c.to, got, c.want)
		}
	}
}

// TestAgainst: what a new version of a member breaks.
func TestAgainst(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"a: {type: string}", "a: {type: string, maxLength: 5}", "BREAK/narrower"},
		{"a: {type: string, maxLength: 5}", "a: {type: string, maxLength: 6}", ""},
		{"a: {type: string, maxLength: 5}", "a: {type: string, maxLength: 4}", "BREAK/narrower"},
		{"a: {type: integer, minimum: 5}", "a: {type: integer, minimum: 4}", ""},
		{"a: {type: integer, minimum: 5}", "a: {type: integer, minimum: 6}", "BREAK/narrower"},
		{"a: {type: string}", "a: {type: integer}", "BREAK/type"},
		{"a: {type: string}", "b: {type: string}", "BREAK/field"},
		{"a: {type: string, enum: [A, B]}", "a: {type: string, enum: [A, B, C]}", ""},
		{"a: {type: string, enum: [A, B]}", "a: {type: string, enum: [A]}", "BREAK/narrower"},
		{"a: {type: string, default: x}", "a: {type: string, default: y}", "BREAK/default"},
		{"a: {type: string}", "a: {type: string, pattern: b}", "BREAK/narrower"},
		{"a: {type: object, properties: {b: {type: string}}}", "a: {type: object, required: [b], properties: {b: {type: string}}}", "BREAK/required"},
		{"a: {type: array, x-kubernetes-list-type: set, items: {type: string}}", "a: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}", "BREAK/list-type"},
		{"a: {type: array, x-kubernetes-list-type: set, items: {type: string}}", "a: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 3}}", "BREAK/narrower"},
		{"a: {type: string}", "a: {type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]}", "BREAK/rule"},
	} {
		if got := rulesIn(Against(crd(c.old), crd(c.now))); got != c.want {
			t.Errorf("%s\n\tto %s\n\tbreaks %q, want %q", c.old, c.now, got, c.want)
		}
	}
	if got := rulesIn(Against(crd("a: {type: string}"), nil)); got != "BREAK/removed" {
		t.Errorf("without the definition: %q", got)
	}
}

// TestFix: what is mended is gone, and everything else of the file is as it was. What an alias repeats is mended once.
func TestFix(t *testing.T) {
	files := crd(`
# a comment
flow: {type: array, items: {type: string}}
block: &block
  type: array   # not as it is written
  items: {type: string}
mended:
  items: {type: string}
  type: array
  x-kubernetes-validations:
  - rule: "true"
    message: this should be set
again: &again
  type: array
  items: {type: string}
alias: *again`)
	data, fixed := Fix(files[0], Of(files))
	if want := strings.NewReplacer(
		"flow: {type: array,", "flow: {type: array, x-kubernetes-list-type: atomic,",
		"              mended:\n                items: {type: string}\n                type: array\n", "              mended:\n                items: {type: string}\n                type: array\n                x-kubernetes-list-type: atomic\n",
		"again: &again\n                type: array\n", "again: &again\n                type: array\n                x-kubernetes-list-type: atomic\n",
		"message: this should be set", `message: "this must be set"`,
	).Replace(string(files[0].Data)); fixed != 4 || string(data) != want {
		t.Errorf("%d mended:\n%s\nwant\n%s", fixed, data, want)
	}
	if got := rulesIn(Of([]source.File{{Name: "a.yaml", Data: data}})); got != "LINT-6/list-type" {
		t.Errorf("%q are left", got)
	}
}

// TestFixMessages: --fix writes a message only if it is the whole value of its line.
func TestFixMessages(t *testing.T) {
	for text, want := range map[string]string{
		"message: this should be set":                `message: "this must be set"`,
		"message: \"this should be set\"":            `message: "this must be set"`,
		"message: 'it''s set, and should be ü'":      `message: "it's set, and must be ü"`,
		"message: this should be set # for now":      "",
		"message: this should be\n      set":         "",
		"message: \"this should be\n      set\"":     "",
		"message: >-\n      this should be set":      "",
		"message: You can't book more than 3 desks":  "",
		"message: this should be set\n    reason: a": "message: \"this must be set\"\n    reason: a",
		"message: this should be set\n    # a":       "message: \"this must be set\"\n    # a",
	} {
		files := crd("mended:\n  type: string\n  x-kubernetes-validations:\n  - rule: \"true\"\n    " + text)
		data, _ := Fix(files[0], Of(files))
		if want == "" {
			want = text
		}
		indented := strings.ReplaceAll(want, "\n", "\n"+strings.Repeat(" ", 14))
		if !strings.Contains(string(data), indented) {
			t.Errorf("%s: got\n%s", text, data)
		}
	}
	flow := crd(`mended: {type: string, x-kubernetes-validations: [{rule: "true", message: this should be set}]}`)
	if data, fixed := Fix(flow[0], Of(flow)); fixed != 0 || string(data) != string(flow[0].Data) {
		t.Errorf("%d mended:\n%s", fixed, data)
	}
}

// TestSuites: the counts of each rule over the definitions of well-known projects change only with the rules.
func TestSuites(t *testing.T) {
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Skipf("no definitions in %s: set SUITES_DIR to the folder that holds them", dir)
	}
	read := source.Read([]string{filepath.Join(dir, "data", "cert-manager"), filepath.Join(dir, "data", "gateway-api")}, &source.Progress{})
	counts := map[string]int{}
	for _, f := range Of(read.Files) {
		counts[f.Rule]++
	}
	var b strings.Builder
	for _, c := range Checks() {
		if n := counts[c.ID]; n > 0 {
			fmt.Fprintf(&b, "%s %d\n", c.ID, n)
		}
	}
	golden, err := os.ReadFile("testdata/suites.txt")
	if err != nil || b.String() != string(golden) {
		t.Errorf("%v: the counts are\n%s", err, &b)
	}
}

// Each rule says why it is, and where the conventions say so, so that reports can.
func TestChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if c.Why == "" || c.Section == "" || seen[c.ID] {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
}
