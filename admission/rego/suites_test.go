package rego

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/document"
)

// suites is the folder of recorded cases.
func suites(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	}
	if _, err := os.Stat(filepath.Join(dir, "cases")); err != nil {
		t.Skipf("the recorded suites are not in %s: set SUITES_DIR", dir)
	}
	return dir
}

// A recordedCase has the verdict of Gatekeeper on an object.
type recordedCase struct {
	ID             string
	Expect         struct{ Violations []string }
	Input          struct{ Review, Parameters json.RawMessage }
	PolicyFiles    []string
	InventoryFiles []string
}

func recordedCases(t testing.TB) []recordedCase {
	t.Helper()
	file, err := os.Open(filepath.Join(suites(t), "cases", "rego-gatekeeper.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var all []recordedCase
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c recordedCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// template has the modules of one of Gatekeeper's templates.
func template(t testing.TB, file string) (modules []Module) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(suites(t), file))
	if err != nil {
		t.Fatal(err)
	}
	type source struct {
		Rego string
		Libs []string
	}
	var read struct {
		Spec struct {
			Targets []struct {
				source
				Code []struct {
					Engine string
					Source source
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	of := read.Spec.Targets[0].source
	for _, c := range read.Spec.Targets[0].Code {
		if c.Engine == "Rego" {
			of = c.Source
		}
	}
	modules = []Module{{File: file, Source: []byte(of.Rego)}}
	for _, lib := range of.Libs {
		modules = append(modules, Module{File: file, Source: []byte(lib)})
	}
	return modules
}

// templateQuery compiles a template.
func templateQuery(t testing.TB, file string) *Query {
	t.Helper()
	modules := template(t, file)
	p, err := Compile(Options{V0: true}, modules...)
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query(p.Packages()[0] + ".violation")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// read is parsed for a value that rules read as they read the review of a request. A number or a
// string has no parts.
func read(t testing.TB, text []byte) Value {
	t.Helper()
	d, err := document.Parse(text, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	v, err := new(reading).begin(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parsed(t testing.TB, text []byte) Value {
	t.Helper()
	if len(bytes.TrimSpace(text)) == 0 {
		return Value{}
	}
	d, err := document.Parse(text, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	v, err := ValueOf(d.Root())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// inventory is data.inventory with the objects of files, as Gatekeeper keeps it.
func inventory(t testing.TB, files []string) Value {
	t.Helper()
	all := map[string]any{}
	put := func(value any, path ...string) {
		at := all
		for _, step := range path[:len(path)-1] {
			next, ok := at[step].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[step] = next
			}
			at = next
		}
		at[path[len(path)-1]] = value
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(suites(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range bytes.Split(text, []byte("\n---")) {
			var o map[string]any
			if err := yaml.Unmarshal(part, &o); err != nil {
				t.Fatal(err)
			}
			if o == nil {
				continue
			}
			metadata := o["metadata"].(map[string]any)
			name, version, kind := metadata["name"].(string), o["apiVersion"].(string), o["kind"].(string)
			if namespace, ok := metadata["namespace"].(string); ok {
				put(o, "namespace", namespace, version, kind, name)
			} else {
				put(o, "cluster", version, kind, name)
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, text)
}

// TestGatekeepersCases: what Gatekeeper says of the objects of its library, we say.
func TestGatekeepersCases(t *testing.T) {
	for _, c := range recordedCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			in := Input{Review: read(t, c.Input.Review), Parameters: parsed(t, c.Input.Parameters)}
			if !in.Parameters.Valid() || in.Parameters == Null {
				in.Parameters = Object()
			}
			in.Inventory = func() (Value, error) { return inventory(t, c.InventoryFiles), nil }
			whole := templateQuery(t, c.PolicyFiles[0])
			bound := whole.With(in.Parameters)
			expectViolations(t, whole, in, c.Expect.Violations)
			in.Parameters = Value{}
			expectViolations(t, bound, in, c.Expect.Violations)
		})
	}
}

func expectViolations(t *testing.T, q *Query, in Input, want []string) {
	t.Helper()
	found, err := q.Violations(context.Background(), &in)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, v := range found {
		got = append(got, v.Message)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
