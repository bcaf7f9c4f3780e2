package cel

import (
	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
)

// A Checked is an expression as it was checked. Explanations are derived from it
// (package explain) when it is compiled; nothing keeps it longer.
type Checked struct {
	Program *Program
	AST     *celast.AST

	env       *env
	variables *Variables
}

// condition checks and plans an expression that must be true.
func (e *env) condition(expression string, variables *Variables) (*Checked, error) {
	ast, err := e.check(expression, celgo.BoolType)
	if err != nil {
		return nil, err
	}
	p, err := e.plan(expression, ast, variables)
	if err != nil {
		return nil, err
	}
	return &Checked{p, ast, e, variables}, nil
}

// Part compiles a part of the expression to a program; nil if that cannot be done.
func (c *Checked) Part(e celast.Expr) *Program {
	part := celast.NewCheckedAST(celast.NewAST(e, c.AST.SourceInfo()), c.AST.TypeMap(), c.AST.ReferenceMap())
	p, err := c.env.plan("", part, c.variables)
	if err != nil {
		return nil // what cannot be evaluated is not explained
	}
	p.optionalOld = c.Program.optionalOld
	return p
}
