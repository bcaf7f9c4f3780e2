package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestOnlyTestsHaveOPAsRunner: OPA's runner of tests, and what only it needs, judge our own runner and are not in the
// program. They bring a compiler to WebAssembly with its runtime.
func TestOnlyTestsHaveOPAsRunner(t *testing.T) {
	t.Parallel()
	found, err := exec.Command("go", "list", "-deps", "-tags", "grpcnotrace", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const opa = "github.com/open-policy-agent/opa/"
	packages := strings.Fields(string(found))
	if !slices.Contains(packages, opa+"v1/topdown") {
		t.Fatal("the program has no evaluator of OPA's")
	}
	for _, p := range packages {
		path, ok := strings.CutPrefix(p, opa)
		if ok && (path == "v1/tester" || path == "v1/rego" || strings.Contains(path, "compiler/wasm") ||
			strings.Contains(path, "resolver/wasm")) {
			t.Errorf("the program has %s", p)
		}
	}
}
