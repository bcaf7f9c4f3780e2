package library_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// sets are the folders of tested policies.
var sets = []string{"pod-security", "workloads", "hygiene", "teams", "storage", "immutable", "ordinary-apis"}

// TestLibrary: each policy stands in a file of its own, says what it is for, has nothing that 'gateway check' warns of,
// and a test beside it that reaches each outcome of each rule.
func TestLibrary(t *testing.T) {
	count := 0
	for _, set := range sets {
		err := filepath.WalkDir(set, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.yaml") {
				return err
			}
			count++
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(data), "# ") ||
				strings.Count(string(data), "\nkind: ValidatingAdmissionPolicy\n")+
					strings.Count(string(data), "\nopenapi: ") != 1 {
				t.Errorf("%s must begin with a comment, and have one policy", path)
			}
			if _, err := os.Stat(strings.TrimSuffix(path, ".yaml") + "_test.yaml"); err != nil {
				t.Error(err)
			}
			_, found := policies.CompileTimed(source.Read([]string{path}, &source.Progress{}), nil)
			for _, f := range found {
				if f.Severity != finding.Note {
					t.Error(f)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 60 {
		t.Errorf("the library has only %d policies", count)
	}
	s, err := policytest.Run(context.Background(),
		policytest.Options{Paths: append([]string{"defaulting", "ratelimits"}, sets...)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		if r.Outcome != policytest.Passed {
			t.Errorf("%s:%d: %s: %s", r.File, r.Line, r.ID, strings.Join(r.Problems, "; "))
		}
	}
	for _, g := range s.Coverage.Missing {
		t.Errorf("%s:%d: %s: %s", g.File, g.Line, g.Field, g.Why)
	}
}

// TestErrors: each template says whose errors it writes, and 'gateway check' warns of none. Stories in proxy have
// what they write.
func TestErrors(t *testing.T) {
	names, err := filepath.Glob("errors/*.yaml")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), "# ") || strings.Count(string(data), "\nkind: ErrorTemplate\n") != 1 ||
			!strings.Contains(string(data), "\n  name: "+strings.TrimSuffix(filepath.Base(name), ".yaml")+"\n") {
			t.Errorf("%s must begin with a comment, and have one template of its name", name)
		}
		_, found := policies.CompileTimed(source.Read([]string{name}, &source.Progress{}), nil)
		for _, f := range found {
			t.Error(f)
		}
	}
}

// TestTogether: the sets can be in force together.
func TestTogether(t *testing.T) {
	for _, f := range policies.Check(sets) {
		if f.Severity == finding.Error {
			t.Error(f)
		}
	}
}
