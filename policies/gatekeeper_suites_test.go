package policies

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/natives"
	"github.com/admission-gateway/gateway/policies/source"
)

// gatekeeperCase is a case of rego-gatekeeper.jsonl: a review, the files with its template and constraint, and what
// Gatekeeper found.
type gatekeeperCase struct {
	ID    string `json:"id"`
	Input struct {
		Review struct {
			Kind            struct{ Group, Version, Kind string }
			Name, Namespace string
			Operation       string
			Object          json.RawMessage
			OldObject       json.RawMessage
		} `json:"review"`
	} `json:"input"`
	PolicyFiles    []string `json:"policyFiles"`
	InventoryFiles []string `json:"inventoryFiles"`
	Expect         struct {
		Matched    bool     `json:"matched"`
		Violations []string `json:"violations"`
	} `json:"expect"`
}

// attributes are of the review's request.
func (c *gatekeeperCase) attributes(t *testing.T) *admission.Attributes {
	t.Helper()
	review := &c.Input.Review
	plural := strings.ToLower(review.Kind.Kind) + "s"
	for kind, n := range natives.Kinds {
		if kind.Group == review.Kind.Group && kind.Kind == review.Kind.Kind {
			plural = n.Plural
		}
	}
	info := &resource.Info{
		Verb: resource.VerbCreate, IsResource: true, APIPrefix: "apis", Group: review.Kind.Group,
		Version:  review.Kind.Version,
		Resource: plural, Namespace: review.Namespace, Name: review.Name,
	}
	a := &admission.Attributes{
		Info: info, Operation: admission.Create, User: &identity.User{Name: "jane"},
		Object: parsed(t, review.Object), Lookup: &admissiontest.Lookup{}, Frame: cel.NewFrame(t.Context()),
	}
	if review.Operation == "UPDATE" {
		info.Verb, a.Operation = resource.VerbUpdate, admission.Update
	}
	if len(review.OldObject) > 0 {
		a.Old = parsed(t, review.OldObject)
	}
	return a
}

func parsed(t *testing.T, raw []byte) *document.Document {
	t.Helper()
	d, err := document.Parse(bytes.Clone(raw), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var constraintName = regexp.MustCompile(`^\[[^]]*\] `)

// TestGatekeeperCases: the templates and constraints of Gatekeeper's library find what they find in Gatekeeper, in its
// words.
func TestGatekeeperCases(t *testing.T) {
	root := suitesDir(t)
	f, err := os.Open(filepath.Join(root, "cases", "rego-gatekeeper.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sets := map[string]*Set{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	cases := 0
	for lines.Scan() {
		var c gatekeeperCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, name := range append(slices.Clone(c.PolicyFiles), c.InventoryFiles...) {
			files = append(files, filepath.Join(root, name))
		}
		key := strings.Join(files, "\n")
		if sets[key] == nil {
			set, found := Load(files)
			if set == nil {
				t.Fatalf("%s: %v", c.ID, found)
			}
			sets[key] = set
		}
		cases++
		a := c.attributes(t)
		var r admission.Report
		sets[key].Admission().Validate(context.Background(), a, &r)
		a.Frame.Release()
		got := []string{}
		for _, d := range r.Denials() {
			got = append(got, constraintName.ReplaceAllString(d.Cause.Message, ""))
		}
		slices.Sort(got)
		slices.Sort(c.Expect.Violations)
		if !slices.Equal(got, c.Expect.Violations) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.ID, got, c.Expect.Violations)
		}
	}
	if t.Logf("%d cases", cases); cases == 0 {
		t.Error("there are no cases")
	}
}

// TestGatekeeperLibrary: every template and every constraint of the library loads.
func TestGatekeeperLibrary(t *testing.T) {
	var files []string
	root := filepath.Join(suitesDir(t), "data", "gatekeeper-library", "library")
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if base := filepath.Base(name); err == nil && !entry.IsDir() && source.IsManifest(name) &&
			(base == "template.yaml" || strings.HasPrefix(base, "constraint")) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		_, found := Load([]string{filepath.Join(filepath.Dir(name), "template.yaml"), name})
		if filepath.Base(name) != "template.yaml" {
			_, found = Load([]string{filepath.Join(filepath.Dir(name), "..", "..", "template.yaml"), name})
		}
		for _, f := range found {
			if f.Severity == Error {
				t.Error(f)
			}
		}
	}
	if t.Logf("%d files", len(files)); len(files) == 0 {
		t.Error("there are no templates")
	}
}

// BenchmarkLoadTemplates loads the library's templates under four names each.
func BenchmarkLoadTemplates(b *testing.B) {
	root := os.Getenv("SUITES_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "suites")
	}
	dir, names := b.TempDir(), regexp.MustCompile(`(?m)^  name: (\w+)$|^        kind: (\w+)$`)
	found, _ := filepath.Glob(filepath.Join(root, "data", "gatekeeper-library", "library", "*", "*", "template.yaml"))
	if len(found) == 0 {
		b.Skip("the recorded suites are not here: set SUITES_DIR")
	}
	for i, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, suffix := range []string{"a", "b", "c", "d"} {
			renamed := names.ReplaceAll(text, []byte("${0}"+suffix))
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d%s.yaml", i, suffix)), renamed,
				0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if set, found := Load([]string{dir}); set == nil {
			b.Fatal(found)
		}
	}
	b.ReportMetric(float64(4*len(found)), "templates")
}

// BenchmarkConstraints has a pod judged by three constraints of the library.
func BenchmarkConstraints(b *testing.B) {
	root := os.Getenv("SUITES_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "suites")
	}
	library := filepath.Join(root, "data", "gatekeeper-library", "library")
	var files []string
	for _, name := range []string{"general/allowedrepos", "general/requiredlabels",
		"pod-security-policy/privileged-containers"} {
		constraints, _ := filepath.Glob(filepath.Join(library, name, "samples", "*", "constraint.yaml"))
		if len(constraints) == 0 {
			b.Skip("the recorded suites are not here: set SUITES_DIR")
		}
		files = append(files, filepath.Join(library, name, "template.yaml"), constraints[0])
	}
	set, found := Load(files)
	if set == nil {
		b.Fatal(found)
	}
	object, err := document.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","labels":{"owner":"jane.agilebank.demo"}},`+
		`"spec":{"containers":[{"name":"a","image":"openpolicyagent/opa:0.9.2","args":["run","--server"],"resources":{"limits":{"cpu":"100m","memory":"30Mi"}}}]}}`), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1",
			Resource: "pods", Namespace: "default"},
		Operation: admission.Create, User: &identity.User{Name: "jane"}, Object: object,
		Lookup: &admissiontest.Lookup{}, Frame: cel.NewFrame(context.Background()),
	}
	var r admission.Report
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		a.Made = nil
		set.Admission().Validate(context.Background(), a, &r)
	}
}
