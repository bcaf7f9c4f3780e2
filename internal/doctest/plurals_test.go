package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// withoutGroups are functions that know resources by their plurals alone, and why they may.
var withoutGroups = map[string]string{
	"HasNamespaceSegments": "paths have the same form in all groups",
	"connects":             "the prefix is that of the core group",
	"setConnect":           "only paths of the core group connect",
	"ConnectOptions":       "only paths of the core group connect",
}

// TestPluralsHaveGroups: a resource of Kubernetes is known by its plural and its group, since other groups may have
// resources of the same name. An expression that compares a resource with a literal plural compares the group too.
func TestPluralsHaveGroups(t *testing.T) {
	const root = "../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "tools" || d.Name() == "e2e" || d.Name() == "bench" ||
			strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is || f.Body == nil || withoutGroups[f.Name.Name] != "" {
				continue
			}
			for at, has := range plurals(f.Body) {
				if found++; !has {
					t.Errorf("%s knows a resource by its plural, without its group", files.Position(at))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 4 {
		t.Errorf("only %d comparisons are found: the test sees nothing", found)
	}
}

// plurals are the places where a function compares resources with plurals, and whether the group is compared there too.
func plurals(body ast.Node) map[token.Pos]bool {
	all := map[token.Pos]bool{}
	var outer []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			outer = outer[:len(outer)-1]
			return true
		}
		outer = append(outer, n)
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && isResource(n.X) && isPlural(n.Y) {
				i := len(outer) - 1
				for i > 0 {
					if _, is := outer[i-1].(ast.Expr); !is {
						break
					}
					i--
				}
				all[n.Pos()] = hasGroup(outer[i])
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isResource(n.Tag) {
				all[n.Pos()] = hasGroup(body)
			}
		}
		return true
	})
	return all
}

func hasGroup(n ast.Node) (has bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		s, is := n.(*ast.SelectorExpr)
		has = has || is && s.Sel.Name == "Group"
		return !has
	})
	return has
}

// isResource reports whether an expression is the field Resource of something.
func isResource(e ast.Expr) bool {
	s, is := e.(*ast.SelectorExpr)
	return is && s.Sel.Name == "Resource"
}

// isPlural reports whether an expression is the literal name of a resource, or a constant that is one.
func isPlural(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && strings.Trim(e.Value, `"abcdefghijklmnopqrstuvwxyz`) == "" && len(e.Value) > 2
	case *ast.Ident:
		return e.Name == "namespaces"
	}
	return false
}
