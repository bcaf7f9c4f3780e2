package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A fault is one small change to the code. All faults of a package are compiled into one test binary, which applies the
// fault whose number it is given: a package is built and linked once, however many faults are tried.
type fault struct {
	id   int
	pos  token.Position
	in   string // the function that has the fault
	what string // what is written there, and what it becomes
}

// name identifies a fault whatever its line: the list of equivalent faults has these.
func (f *fault) name(room string) string { return room + ": " + f.in + ": " + f.what }

// A spot is a node of the syntax with the faults that can be planted there.
type spot struct {
	node   ast.Node
	kind   kind
	faults []*fault
	to     []string // for conditions: the operator that replaces the one of the comparison, or "!"
	typed  string   // for numbers: the type; for functions: the zero results
}

type kind int

const (
	condition kind = iota // a boolean expression with another operator, or negated
	sum                   // + or - with the opposite sign
	number                // an integer literal, one larger
	statement             // a statement that is skipped
	body                  // a function that returns zero values at once
)

// opposites are the operators that replace the one of a comparison. Of an equation there is only one that means
// anything.
var opposites = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
}

// A finder looks for spots in one file.
type finder struct {
	fset  *token.FileSet
	info  *types.Info
	pkg   *types.Package
	text  []byte
	file  *ast.File
	spots []*spot
	in    string // the function or variable that is looked at
}

// find returns the spots of a file in the order of the text.
func find(fset *token.FileSet, info *types.Info, pkg *types.Package, file *ast.File, text []byte) []*spot {
	f := &finder{fset: fset, info: info, pkg: pkg, text: text, file: file}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				f.function(d)
			}
		case *ast.GenDecl:
			f.variables(d)
		}
	}
	return f.spots
}

func (f *finder) function(fn *ast.FuncDecl) {
	f.in = functionName(fn)
	if zeros, ok := f.zeros(fn); ok {
		f.add(&spot{node: fn.Body, kind: body, typed: zeros}, "its body becomes "+strings.TrimSpace("return "+zeros))
	}
	f.walk(fn.Body)
}

// variables looks at what package-level variables begin with, such as tables of functions.
func (f *finder) variables(d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		if v, ok := s.(*ast.ValueSpec); ok {
			f.in = v.Names[0].Name
			for _, e := range v.Values {
				f.walk(e)
			}
		}
	}
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	on := fn.Recv.List[0].Type
	if p, ok := on.(*ast.StarExpr); ok {
		on = p.X
	}
	return strings.TrimSuffix(types.ExprString(on), "[...]") + "." + fn.Name.Name
}

// zeros returns the zero values that a function can return at once, as text. A function that does nothing else has
// none.
func (f *finder) zeros(fn *ast.FuncDecl) (string, bool) {
	if len(fn.Body.List) == 0 {
		return "", false
	}
	results := fn.Type.Results
	if results == nil || len(results.List[0].Names) > 0 {
		return "", true
	}
	if r, ok := fn.Body.List[0].(*ast.ReturnStmt); ok &&
		!slices.ContainsFunc(r.Results, func(e ast.Expr) bool { return !f.isZero(e) }) {
		return "", false
	}
	shadowed := map[string]bool{}
	for _, l := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
		if l == nil {
			continue
		}
		for _, p := range l.List {
			for _, n := range p.Names {
				shadowed[n.Name] = true
			}
		}
	}
	var all []string
	usable := true
	for _, r := range results.List {
		ast.Inspect(r.Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && shadowed[id.Name] {
				usable = false
			}
			return true
		})
		all = append(all, "*new("+f.source(r.Type)+")")
	}
	return strings.Join(all, ", "), usable
}

func (f *finder) isZero(e ast.Expr) bool {
	tv := f.info.Types[e]
	return tv.IsNil() || tv.Value != nil && (tv.Value.ExactString() == "false" || tv.Value.ExactString() == "0" ||
		tv.Value.ExactString() == `""`)
}

// walk looks for faults in a node and all nodes inside it.
func (f *finder) walk(root ast.Node) {
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		var parent ast.Node
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		if !f.look(n, parent) {
			return false
		}
		stack = append(stack, n)
		return true
	})
}

// look adds the faults of a node, and reports whether there can be others inside it.
func (f *finder) look(n, parent ast.Node) bool {
	if e, ok := n.(ast.Expr); ok {
		tv := f.info.Types[e]
		if tv.IsType() {
			return false
		}
		if tv.Value != nil {
			f.constant(e, parent)
			return false
		}
		f.expression(e, parent)
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.CallExpr:
		// The sizes of make are room to grow, which nothing shows.
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "make" && f.info.Uses[id] == types.Universe.Lookup("make") {
			return false
		}
	case *ast.CompositeLit:
		if _, isArray := f.info.TypeOf(n).Underlying().(*types.Array); isArray {
			return false // whose keys are constants
		}
	case ast.Stmt:
		f.statement(n, parent)
	}
	return true
}

func (f *finder) expression(e ast.Expr, parent ast.Node) {
	if b, ok := e.(*ast.BinaryExpr); ok {
		switch to := opposites[b.Op]; {
		case to != nil && f.isBool(e):
			s := &spot{node: e, kind: condition, to: to}
			for _, op := range to {
				f.add(s, fmt.Sprintf("%s becomes %s %s %s", f.brief(e), f.brief(b.X), op, f.brief(b.Y)))
			}
			return
		case b.Op == token.ADD || b.Op == token.SUB:
			if typed, ok := f.numeric(b.Y); ok && f.info.Types[b.Y].Value == nil {
				op := map[token.Token]string{token.ADD: "-", token.SUB: "+"}[b.Op]
				f.add(&spot{node: b.Y, kind: sum, typed: typed},
					fmt.Sprintf("%s becomes %s %s %s", f.brief(e), f.brief(b.X), op, f.brief(b.Y)))
			}
		}
		return
	}
	if f.isBool(e) && isCondition(e, parent) {
		f.add(&spot{node: e, kind: condition, to: []string{"!"}},
			fmt.Sprintf("%s becomes !(%s)", f.brief(e), f.brief(e)))
	}
}

// isCondition reports whether an expression that is no comparison decides something by itself.
func isCondition(e ast.Expr, parent ast.Node) bool {
	switch p := parent.(type) {
	case *ast.IfStmt:
		return p.Cond == e
	case *ast.ForStmt:
		return p.Cond == e
	case *ast.BinaryExpr:
		return p.Op == token.LAND || p.Op == token.LOR
	case *ast.CaseClause, *ast.ReturnStmt:
		return true
	}
	return false
}

// constant adds the faults of a constant expression: a number that is one larger, or a boolean that is the other one.
func (f *finder) constant(e ast.Expr, parent ast.Node) {
	if id, ok := e.(*ast.Ident); ok && f.isBool(e) && (id.Name == "true" || id.Name == "false") {
		if _, isReturn := parent.(*ast.ReturnStmt); isReturn {
			f.add(&spot{node: e, kind: condition, to: []string{"!"}},
				fmt.Sprintf("return %s becomes !%s", id.Name, id.Name))
		}
		return
	}
	if l, ok := e.(*ast.BasicLit); !ok || l.Kind != token.INT {
		return
	}
	switch p := parent.(type) {
	case *ast.ArrayType, *ast.KeyValueExpr:
		return
	case *ast.BinaryExpr:
		if p.Op == token.SHL || p.Op == token.SHR {
			return
		}
	}
	if typed, ok := f.numeric(e); ok {
		text := f.brief(e)
		if p, isExpr := parent.(ast.Expr); isExpr {
			text += " of " + f.brief(p)
		}
		f.add(&spot{node: e, kind: number, typed: typed}, text+" becomes one more")
	}
}

func (f *finder) statement(s ast.Stmt, parent ast.Node) {
	switch parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return
	}
	if c, ok := parent.(*ast.CommClause); ok && c.Comm == s {
		return
	}
	switch s := s.(type) {
	case *ast.ExprStmt:
		if c, ok := s.X.(*ast.CallExpr); ok {
			if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "panic" {
				return
			}
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
		if id, ok := s.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
	case *ast.BranchStmt:
		if s.Tok != token.BREAK && s.Tok != token.CONTINUE {
			return
		}
	default:
		return
	}
	f.add(&spot{node: s, kind: statement}, f.brief(s)+" is left out")
}

func (f *finder) isBool(e ast.Expr) bool {
	b, ok := f.info.TypeOf(e).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// numeric returns the type of a number as this file can write it.
func (f *finder) numeric(e ast.Expr) (string, bool) {
	t := types.Unalias(f.info.TypeOf(e))
	b, ok := t.Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsNumeric == 0 || b.Info()&(types.IsComplex|types.IsUntyped) != 0 ||
		b.Kind() == types.UnsafePointer {
		return "", false
	}
	name := types.TypeString(t, func(*types.Package) string { return "" })
	_, declared := f.pkg.Scope().Innermost(e.Pos()).LookupParent(name, e.Pos())
	return name, declared != nil && types.Identical(types.Unalias(declared.Type()), t)
}

func (f *finder) add(s *spot, what string) {
	if len(s.faults) == 0 {
		f.spots = append(f.spots, s)
	}
	s.faults = append(s.faults, &fault{pos: f.fset.Position(s.node.Pos()), in: f.in, what: what})
}

func (f *finder) source(n ast.Node) string {
	return string(f.text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// brief is the text of a node on one line, shortened in the middle.
func (f *finder) brief(n ast.Node) string {
	s := strings.Join(strings.Fields(f.source(n)), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:40]) + " ... " + string(r[len(r)-15:])
	}
	return s
}
