package cel

import (
	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
)

// A Checked is an expression as it was checked. Explanations are derived from it
// (package explain); it is large, and they do not keep it.
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

// A Source checks a condition once more. It is safe for concurrent use.
type Source struct {
	program *Program
	env     *env
}

// Source returns what a condition can be checked again by. It is nil if that depends on variables of the policy, or
// needs an environment that no other policy has: they are large to keep.
func (c *AdmissionCompiler) Source(of *Checked) *Source {
	if !c.isShared || len(c.list.names) > 0 {
		return nil
	}
	return &Source{of.Program, of.env.apart()}
}

// Check checks the expression again. It returns nil if that fails.
func (s *Source) Check() *Checked {
	ast, issues := s.env.Compile(s.program.source)
	if issues != nil {
		return nil
	}
	return &Checked{s.program, ast.NativeRep(), s.env, nil}
}

// apart returns the environment without what only the load of a set has, which is large and serves one goroutine.
func (e *env) apart() *env {
	if e.common == nil {
		return e
	}
	if e.alone == nil {
		alone := *e
		alone.common = nil
		e.alone = &alone
	}
	return e.alone
}
