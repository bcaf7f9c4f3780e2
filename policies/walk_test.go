package policies_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// walked is a test of the kind that the walk adds.
const walked = `package policies

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/source"
)

const prefixed = "apiVersion: admission-gateway.io/v1alpha1\nkind: PrefixPolicy\nmetadata: {name: a}\nspec:\n" +
	"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n"

func TestPrefixPolicy(t *testing.T) {
	for text, want := range map[string]string{
		prefixed:                      "",
		prefixed + "  prefix: ''\n":    "a.yaml:6: spec.prefix: Invalid value",
		prefixed + "  prefixes: [a]\n": "a.yaml:6: spec.prefixes: unknown field",
		prefixed + "---\n" + prefixed:  "must be unique",
	} {
		set, found := Compile(source.Of([]source.File{{Name: "a.yaml", Data: []byte(text)}}))
		if (set != nil) != (want == "") || want != "" && !strings.Contains(found[0].String(), want) {
			t.Errorf("%s: found %v, want %q", text, found, want)
		}
		if set == nil {
			continue
		}
		for name, isAllowed := range map[string]bool{"team-a": true, "other": false} {
			d, err := document.Parse([]byte("{\"metadata\":{\"name\":\""+name+"\"}}"), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			frame := cel.NewFrame(context.Background())
			a := &admission.Attributes{Operation: admission.Create, Object: d, Frame: frame, Info: &resource.Info{
				Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1", Resource: "pods", Namespace: "x", Name: name}}
			var report admission.Report
			if set.Admission().Validate(context.Background(), a, &report); (len(report.Denials()) == 0) != isAllowed {
				t.Errorf("%s: denied by %v", name, report.Denials())
			}
		}
	}
}
`

// TestWalkAddKind takes the steps of docs/internals/architecture.md by which a kind is added, in a copy of the tree: Go
// reads the files that they change from elsewhere. The kind is compiled, and with E2E_ALL=1 it is used too.
func TestWalkAddKind(t *testing.T) {
	page, err := os.ReadFile("../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(page), "\n## Walk: add a policy kind\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	steps := regexp.MustCompile("(?s)\n`([^`\n]+)`:\n\n```[a-z]+\n(.*?)\n```\n").FindAllStringSubmatch(walk, -1)
	if !found || len(steps) != 4 {
		t.Fatalf("the walk has %d steps, want 4", len(steps))
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "docs/policies"), os.DirFS("../docs/policies")),
		os.CopyFS(filepath.Join(dir, "policies/crds"), os.DirFS("crds"))); err != nil {
		t.Fatal(err)
	}
	steps = append(steps, []string{"", "policies/prefixpolicy_test.go", walked})
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for _, step := range steps {
		at, text := filepath.Join(root, step[1]), step[2]
		if step[1] == "policies/kinds.go" {
			text = withLine(t, at, text)
		} else if _, err := os.Stat(at); err == nil {
			t.Fatalf("%s is there already", step[1])
		}
		overlay.Replace[at] = filepath.Join(dir, step[1])
		testutil.WriteFile(t, overlay.Replace[at], text+"\n")
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, filepath.Join(dir, "overlay.json"), string(text))
	if os.Getenv("E2E_ALL") == "" {
		run(t, "..", "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./policies")
	} else if out := run(t, "..", "go", "test", "-overlay", filepath.Join(dir, "overlay.json"), "-vet=off",
		"-ldflags=-s -w", "-count=1", "-v",
		"-run", "^TestPrefixPolicy$", "./policies"); !strings.Contains(out, "--- PASS: TestPrefixPolicy") {
		t.Errorf("the kind was not tested:\n%s", out)
	}
	run(t, "../tools", "go", "run", "./crdtables", dir)
	fields, err := os.ReadFile(filepath.Join(dir, "docs/policies/prefixpolicy.md"))
	if err != nil || !strings.Contains(string(fields), "| `spec.prefix` | string | `team-` | How the names begin. |") {
		t.Errorf("the page is %v\n%s", err, fields)
	}
}

// withLine returns the table of kinds with a line more, sorted by name within its group.
func withLine(t *testing.T, file, line string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	name := regexp.MustCompile("^\t(?:define|declare)\\(ownGroup, \"([A-Za-z]+)\"")
	added := name.FindStringSubmatch(line)
	at := slices.IndexFunc(lines, func(l string) bool {
		m := name.FindStringSubmatch(l)
		return m != nil && added != nil && m[1] > added[1]
	})
	if at < 0 {
		t.Fatalf("%s has no place for %q", file, line)
	}
	return strings.Join(slices.Insert(lines, at, line), "\n")
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}
