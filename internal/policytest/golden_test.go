package policytest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestGoldenObjects: a case expects the object that is in a file, which --update writes if the request succeeds. A file
// that cannot be read fails the case.
func TestGoldenObjects(t *testing.T) {
	const test = `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: some}
spec:
  cases:
  - name: a
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {k: v}}
    expect: {decision: Allowed, objectFile: want.yaml}
`
	dir := testutil.WriteFiles(t, map[string]string{"a_test.yaml": test})
	file := filepath.Join(dir, "want.yaml")
	run := func(update bool) Result {
		t.Helper()
		s, err := Run(context.Background(), Options{Paths: []string{dir}, Update: update})
		if err != nil {
			t.Fatal(err)
		}
		return s.Results[0]
	}
	if r := run(false); r.Outcome == Passed || !strings.Contains(strings.Join(r.Problems, "; "), "want.yaml") {
		t.Errorf("without the file: %v", r)
	}
	if r := run(true); r.Outcome != Passed {
		t.Errorf("with --update: %v", r)
	}
	const want = "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n"
	if text, err := os.ReadFile(file); err != nil || string(text) != want {
		t.Errorf("--update wrote\n%s%v", text, err)
	}
	if r := run(false); r.Outcome != Passed {
		t.Errorf("with the file: %v", r)
	}
	testutil.WriteFile(t, file, strings.Replace(want, "k: v", "k: w", 1))
	if r := run(false); r.Outcome == Passed {
		t.Errorf("with another object: %v", r)
	}
	testutil.WriteFile(t, file, "a: [")
	if r := run(false); r.Outcome == Passed {
		t.Errorf("with a file that is no YAML: %v", r)
	}
}
