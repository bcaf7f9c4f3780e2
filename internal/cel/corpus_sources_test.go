package cel

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestCorpusOfSources evaluates the expressions in cel-spec and in the sources of the tests of cel-go and Kubernetes.
func TestCorpusOfSources(t *testing.T) {
	var n tally
	e, err := newAdmissionEnv(nil, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	object, old := celtest.Decode(t, celtest.PlainObject), celtest.Decode(t, celtest.BenchObject)
	values := map[string]any{
		"object":    types.DefaultTypeAdapter.NativeToValue(object),
		"oldObject": types.DefaultTypeAdapter.NativeToValue(old),
		"params":    nil, "namespaceObject": nil,
	}
	node, oldNode := celtest.Parse(t, celtest.PlainObject), celtest.Parse(t, celtest.BenchObject)
	set := func(v *Vars) {
		v.Set(value.Object, node, nil)
		v.Set(value.OldObject, oldNode, nil)
	}
	for _, expression := range sourceExpressions(t) {
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue
		}
		theirs, err := e.Program(checked)
		natively, ourErr := e.plan(expression, checked.NativeRep(), nil)
		if (err == nil) != (ourErr == nil) {
			t.Errorf("%s\nplanning: %v, Kubernetes %v", expression, ourErr, err)
		}
		if err != nil || ourErr != nil {
			continue
		}
		lazily, _, err := e.interpreted(expression, checked.NativeRep(), nil)
		if err != nil {
			t.Fatal(err)
		}
		n.planned(natively)
		n.compare(t, expression,
			func() (evalResult, bool) { return ours(natively, set), natively.native != nil },
			func() evalResult { return ours(lazily, set) },
			func() evalResult { return kubernetes(theirs, values) })
	}
	n.report(t, 90)
}

// sourceExpressions are the strings in sources that may be expressions.
func sourceExpressions(t *testing.T) []string {
	var all []string
	celtest.EachLine(t, "cel-spec.jsonl", func(line []byte) {
		var c struct{ Expr string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Expr)
	})
	for _, module := range []string{"github.com/google/cel-go", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver"} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			t.Logf("the sources of %s are not here: %v", module, err)
			continue
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") || !strings.Contains(path, "cel") {
				return err
			}
			all = append(all, stringsIn(t, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stringsIn are the string literals of a Go source.
func stringsIn(t *testing.T, path string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && len(s) > 2 && len(s) < 2000 {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}
