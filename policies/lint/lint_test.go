package lint

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
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
		"updateStrategy: {type: string}":                                            "",
		"deletePolicy: {type: string}":                                              "",
		"addOns: {type: string}":                                                    "",
		"generateName: {type: string}":                                              "",
		"userAuth: {type: string}":                                                  "LINT-2/abbreviation",
		"externalAuth: {type: string}":                                              "",
		"oauthMetadata: {type: string}":                                             "",
		"basicAuth: {type: string}":                                                 "",
		"emptyDir: {type: string}":                                                  "",
		"scheme: {type: string, enum: [http, https]}":                               "",
		"version: {type: string, enum: [v4.11, '2.8', vCurrent, V1.0]}":             "",
		"platform: {type: string, enum: [oVirt, vSphere, None]}":                    "",
		"challenge: {type: string, enum: [DNS-01, machine.example.com]}":            "",
		"resource: {type: string, enum: [machinesets]}":                             "",
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
		"ports: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}":                                               "LINT-6/map",
		"secret: {type: object, properties: {kind: {type: string}, group: {type: string}, name: {type: string}}}":                                    "LINT-7/name",
		"secretRef: {type: object, properties: {name: {type: string}, namespace: {type: string}}}":                                                   "LINT-7/namespace",
		"grantedRef: {type: object, properties: {name: {type: string}, namespace: {type: string, description: a ReferenceGrant is required there}}}": "",
		"parentRef: {type: object, properties: {name: {type: string}, namespace: {type: string}}}":                                                   "",
		"ownerRef: {type: object, properties: {name: {type: string}, kind: {type: string}}}":                                                         "LINT-7/group",
		"size: {type: string, default: x, x-kubernetes-validations: [{rule: 'true', message: size should be set}]}":                                  "LINT-9/message",
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
		{"name: widgets.example.com", "name: widgets.example.com, labels: {gateway.networking.k8s.io/policy: Direct}",
			""},
		{"name: widgets.example.com", "name: widgets.example.com, annotations: {example.com/: a}", "LINT-10/key"},
		{"scope: Namespaced", "scope: Cluster", ""},
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
		{"a: {type: object, properties: {b: {type: string}}}",
			"a: {type: object, required: [b], properties: {b: {type: string}}}", "BREAK/required"},
		{"a: {type: array, x-kubernetes-list-type: set, items: {type: string}}",
			"a: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}", "BREAK/list-type"},
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

// TestSuites: the counts of each rule over the definitions of well-known projects and over well-known documents change
// only with the rules. Each kind of finding in them was read, and is true. Behind the counts of documents stands how
// many findings are left where each document has one for each rule. Nothing is said of Gateway API's names and labels,
// which Kubernetes' reviewers of APIs have agreed to.
func TestSuites(t *testing.T) {
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Skipf("no definitions in %s: set SUITES_DIR to the folder that holds them", dir)
	}
	var b strings.Builder
	total := 0
	for _, suite := range []string{"cert-manager", "gateway-api", "openshift-api", "openapi"} {
		files := definitions(t, filepath.Join(dir, "data", suite))
		fmt.Fprintf(&b, "%s: %d files\n", suite, len(files))
		found := Of(files)
		each, gathered := countsOf(found), countsOf(Gathered(found))
		total += len(files)
		for _, f := range found {
			if suite == "gateway-api" &&
				(strings.HasPrefix(f.Rule, "LINT-1/") || strings.HasPrefix(f.Rule, "LINT-2/") ||
					strings.HasPrefix(f.Rule, "LINT-10/")) {
				t.Error(f)
			}
		}
		for _, c := range Checks() {
			switch n, left := each[c.ID], gathered[c.ID]; {
			case n == 0:
			case n == left:
				fmt.Fprintf(&b, "  %s %d\n", c.ID, n)
			default:
				fmt.Fprintf(&b, "  %s %d, %d\n", c.ID, n, left)
			}
		}
	}
	if total < 50 {
		t.Errorf("there are only %d files", total)
	}
	golden, err := os.ReadFile("testdata/suites.txt")
	if err != nil || b.String() != string(golden) {
		t.Errorf("%v: the counts are\n%s", err, &b)
	}
}

func countsOf(found []finding.Finding) map[string]int {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.Rule]++
	}
	return counts
}

// definitions reads the CustomResourceDefinitions and documents below a folder, in archives too.
func definitions(t *testing.T, dir string) (files []source.File) {
	t.Helper()
	add := func(name string, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(dir, "openapi") || bytes.Contains(data, []byte("kind: CustomResourceDefinition\n")) {
			files = append(files, source.File{Name: name, Data: data})
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		var r io.Reader = f
		name, isZipped := strings.CutSuffix(path, ".gz")
		if isZipped {
			if r, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		switch filepath.Ext(name) {
		case ".yaml", ".json":
			add(name, r)
		case ".tar":
			for archive := tar.NewReader(r); ; {
				h, err := archive.Next()
				if err == io.EOF {
					break
				} else if err != nil {
					return err
				}
				if filepath.Ext(h.Name) == ".yaml" {
					add(h.Name, archive)
				}
			}
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d definitions: %v", dir, len(files), err)
	}
	return files
}

// documentOf returns an OpenAPI document with some schemas, each in a line of its own.
func documentOf(schemas string) []source.File {
	return []source.File{{Name: "a.yaml", Data: []byte("openapi: 3.0.3\ninfo: {title: a, version: v1}\npaths: {}\ncomponents:\n  schemas:\n    " +
		strings.ReplaceAll(strings.TrimSpace(schemas), "\n", "\n    ") + "\n")}}
}

// TestOrdinary: an ordinary API is asked to keep to its own ways, and not to those of Kubernetes.
func TestOrdinary(t *testing.T) {
	for schemas, want := range map[string]string{
		"A: {properties: {user_id: {type: string}, html_url: {type: string}, state: {type: string}}}":                                                                                                         "",
		"A: {properties: {user_id: {type: string}, html_url: {type: string}, pageToken: {type: string}}}":                                                                                                     "LINT-2/field-name warning: must be snake_case as most names of the document, not 'pageToken'",
		"A: {properties: {userId: {type: string}, html_url: {type: string}, pageToken: {type: string}}}":                                                                                                      "LINT-2/field-name warning: must be camelCase as most names of the document, not 'html_url'",
		"A: {properties: {UserID: {type: string}, Total: {type: string}}}":                                                                                                                                    "",
		"A: {properties: {userId: {type: string}, htmlUrl: {type: string}}}":                                                                                                                                  "",
		"A: {properties: {userId: {type: string}, teamID: {type: string}}}":                                                                                                                                   "LINT-2/acronym warning: must have all letters of 'Id' in one case: 'ID'",
		"A: {properties: {a: {type: string, enum: [open, closed]}, b: {type: string, enum: [OPEN, '7']}, c: {type: string, enum: [tooMany, unique]}, d: {type: string, enum: [USD, Other]}}}":                 "",
		"A: {properties: {a: {type: string, enum: [open, Closed]}}}":                                                                                                                                          "LINT-5/enum wording: must have values that are all written in one way",
		"A: {properties: {items: {type: array, items: {type: string}}, total: {type: string}}}":                                                                                                               "",
		"A: {required: [type, mode], properties: {type: {type: string, enum: [a], default: a}, mode: {type: string, default: b}}}":                                                                            "LINT-8/required-default wording: must not be required, because it has a default",
		"A: {properties: {score: {type: number}}}":                                                                                                                                                            "LINT-4/float wording: must not be a floating-point number: use an integer of a smaller unit, or a string with a format",
		"A: {properties: {idle_timeout: {type: string}, timeout: {type: string}}}":                                                                                                                            "LINT-3/duration wording: must be an integer: 'timeout_seconds'",
		"A: {properties: {owner: {type: object, properties: {name: {type: string}, kind: {type: string}, namespace: {type: string}}}}}":                                                                       "",
		"A: {properties: {isOpen: {type: string}, byName: {type: object, additionalProperties: {properties: {a: {type: string}}}}}}":                                                                          "",
		"A: {properties: {+1: {type: string}, EUR: {type: string}, _links: {type: string}, api_key.created: {type: string}, total_count: {type: string}, hate/violent: {type: string}, x-y: {type: string}}}": "",
		"A: {properties: {air.lineCode: {type: string}, total_count: {type: string}, page_size: {type: string}}}":                                                                                             "LINT-2/field-name warning: must be snake_case as most names of the document, not 'air.lineCode'",
	} {
		var got []string
		for _, f := range Of(documentOf(schemas)) {
			severity := map[finding.Severity]string{finding.Warning: "warning", finding.Wording: "wording"}[f.Severity]
			got = append(got, f.Rule+" "+severity+": "+f.Message)
		}
		if got := strings.Join(got, "\n"); got != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", schemas, got, want)
		}
	}
}

// TestGathered: a document has one finding for each rule, and a CustomResourceDefinition one for each field.
func TestGathered(t *testing.T) {
	files := documentOf("A: {properties: {a_b: {type: string}, b_c: {type: string}, aB: {type: string}, n: {type: number}}}\nB: {properties: {c_d: {type: string}, bC: {type: string}}}")
	files[0].Name = "document.yaml"
	files = append(files, crd("A: {type: string}\nB: {type: string}")...)
	var got []string
	for _, f := range Gathered(Of(files)) {
		got = append(got, f.String())
	}
	const schema = ".properties.spec.properties."
	want := []string{
		"a.yaml:22: spec.versions[0].schema.openAPIV3Schema" + schema + "A: warning: must be camelCase, not 'A'",
		"a.yaml:23: spec.versions[0].schema.openAPIV3Schema" + schema + "B: warning: must be camelCase, not 'B'",
		"document.yaml:6: components.schemas.A.properties.aB: warning: must be snake_case as most names of the document, not 'aB'; and 1 more place, which 'gateway lint -v' shows",
		"document.yaml:6: components.schemas.A.properties.n: warning: must not be a floating-point number: use an integer of a smaller unit, or a string with a format",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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

// TestFixOfItems: --fix leaves a list alone whose type it does not find, and does not take the type of the list around
// it for that.
func TestFixOfItems(t *testing.T) {
	files := crd(`
outer:
  items:
    items: {type: string}
    type: "array"
  type: array
  x-kubernetes-list-type: atomic`)
	if data, fixed := Fix(files[0], Of(files)); fixed != 0 || string(data) != string(files[0].Data) {
		t.Errorf("%d mended:\n%s", fixed, data)
	}
}
