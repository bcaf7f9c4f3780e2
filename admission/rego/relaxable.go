package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Relaxable returns the rules that a lenient query may leave without a value, because a built-in
// function that they call can fail. The sentences say which functions.
func (p *Program) Relaxable() (errs Errors) {
	for _, m := range p.compiled().Modules {
		for _, first := range m.Rules {
			for r := first; r != nil; r = r.Else {
				names := p.failing(r)
				if len(names) == 0 {
					continue
				}
				e := Error{Message: fmt.Sprintf(
					"fail-open: an error of %s counts as undefined here, so that a request may pass that the rule would refuse",
					strings.Join(names, ", "))}
				e.locate(p.sources, r.Location)
				errs = append(errs, e)
			}
		}
	}
	errs.sort()
	return slices.Compact(errs)
}

// failing are the names of the built-in functions that a rule calls and that may fail.
func (p *Program) failing(r *ast.Rule) (names []string) {
	look := func(e *ast.Expr) bool {
		if !e.IsCall() || e.IsEquality() {
			return false
		}
		name := e.Operator().String()
		if ast.BuiltinMap[name] != nil && !neverFails[name] && !slices.Contains(names, "'"+name+"'") {
			names = append(names, "'"+name+"'")
		}
		return false
	}
	ast.WalkExprs(r.Head, look)
	ast.WalkExprs(r.Body, look)
	return names
}

// neverFails are the built-in functions that have a value for any operands.
var neverFails = map[string]bool{
	ast.Equal.Name: true, ast.NotEqual.Name: true, ast.LessThan.Name: true, ast.LessThanEq.Name: true,
	ast.GreaterThan.Name:   true,
	ast.GreaterThanEq.Name: true, ast.Member.Name: true, ast.MemberWithKey.Name: true, ast.TypeNameBuiltin.Name: true,
	ast.IsString.Name: true, ast.IsNumber.Name: true, ast.IsBoolean.Name: true, ast.IsArray.Name: true,
	ast.IsSet.Name:    true,
	ast.IsObject.Name: true, ast.IsNull.Name: true, ast.WalkBuiltin.Name: true, ast.Print.Name: true,
	ast.InternalPrint.Name: true,
	ast.NowNanos.Name:      true, ast.Trace.Name: true,
}
