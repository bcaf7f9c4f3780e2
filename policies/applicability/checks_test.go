package applicability

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestChecks: the documentation has the ids of all findings, with what each is for, and no others; each id is one that
// some finding has.
func TestChecks(t *testing.T) {
	text, err := os.ReadFile("../../docs/policies/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| id | why |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want strings.Builder
	known := map[string]bool{}
	for _, c := range Checks() {
		want.WriteString("| `" + c.ID + "` | " + c.Why + " |\n")
		known[c.ID] = true
	}
	if table+"\n" != want.String() {
		t.Errorf("docs/policies/README.md must have\n%s", want.String())
	}
	uses := usesOfIDs(t)
	for id := range uses {
		if !known[id] {
			t.Errorf("'%s' is not among the checks", id)
		}
	}
	for id := range known {
		if uses[id] == 0 {
			t.Errorf("no finding has the id '%s'", id)
		}
	}
}

// usesOfIDs counts how often this package and package policies name each id outside of the list of checks.
func usesOfIDs(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	loader, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	ids, named := map[string]string{}, map[string]int{}
	for _, file := range append(files, loader...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if file == "checks.go" {
					id, err := strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					ids[n.Names[0].Name] = id
				}
			case *ast.Ident:
				if file != "checks.go" {
					named[n.Name]++
				}
			}
			return true
		})
	}
	uses := map[string]int{}
	for name, id := range ids {
		uses[id] = named[name]
	}
	return uses
}
