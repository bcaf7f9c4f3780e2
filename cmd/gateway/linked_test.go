package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMethodsByName: nothing in the program looks methods up by a name, or a number, that the linker cannot see. If
// something did, as text/template does, the linker would keep all exported methods of all types: 19 MB more.
func TestMethodsByName(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the program")
	}
	t.Parallel()
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "gateway"), ".")
	dump, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, dump[max(0, len(dump)-4000):])
	}
	if !bytes.Contains(dump, []byte("-> main.main\n")) {
		t.Fatal("the linker does not say what it links")
	}
	for _, path := range methodsByName(bytes.NewReader(dump)) {
		t.Errorf("methods are looked up by name, so that the linker keeps all: %s", path)
	}
}

// The dump of a program that executes a template.
func TestMethodsByNameAreFound(t *testing.T) {
	const dump = `main.main -> main.write
main.write -> text/template.(*Template).Execute
text/template.(*Template).Execute -> text/template.(*state).evalField <ReflectMethod>
text/template.(*state).evalField <ReflectMethod> -> reflect.Value.MethodByName
text/template.(*state).evalField <ReflectMethod> -> reflect.(*Value).Method <ReflectMethod>
main.main -> main.other
type:reflect.Value <UsedInIface> -> reflect.(*Value).Kind
`
	got := methodsByName(strings.NewReader(dump))
	want := []string{"main.main -> main.write -> text/template.(*Template).Execute -> text/template.(*state).evalField"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

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
		if ok && (path == "v1/tester" || path == "v1/rego" || strings.Contains(path, "compiler/wasm") || strings.Contains(path, "resolver/wasm")) {
			t.Errorf("the program has %s", p)
		}
	}
}

// methodsByName returns how the functions are reached that the linker marks as looking methods up. One that only such a
// function reaches is not named, since it may be linked for that reason alone.
func methodsByName(dump io.Reader) (paths []string) {
	const mark = " <ReflectMethod>"
	name := func(symbol string) string { name, _, _ := strings.Cut(symbol, " <"); return name }
	reached := map[string]string{}
	lines := bufio.NewScanner(dump)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		from, to, ok := strings.Cut(lines.Text(), " -> ")
		if !ok {
			continue
		}
		reached[name(to)] = name(from)
		if !strings.HasSuffix(to, mark) || len(paths) > 0 {
			continue
		}
		path := name(to)
		for caller := name(from); caller != "" && len(path) < 2000; caller = reached[caller] {
			path = caller + " -> " + path
		}
		paths = append(paths, path)
	}
	return paths
}
