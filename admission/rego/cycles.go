package rego

import "github.com/open-policy-agent/opa/v1/ast"

// mayCycle reports whether OPA's evaluator may give a variable a value that has the variable as a
// part, as x == [x] does if x has no value yet. It would follow that value until the stack is full,
// which ends the process. A variable has no value if a comprehension is evaluated once for all
// values of it, so that such modules are compiled without that.
func mayCycle(c *ast.Compiler) bool {
	found := false
	for _, m := range c.Modules {
		ast.WalkTerms(m, func(t *ast.Term) bool {
			if ast.IsComprehension(t.Value) && c.ComprehensionIndex(t) != nil {
				ast.WalkExprs(t, func(e *ast.Expr) bool {
					found = found || takesApart(e)
					return found
				})
			}
			return found
		})
	}
	return found
}

// takesApart reports whether an expression makes a variable, or a value that is written with some,
// equal to a value that is written with variables.
func takesApart(e *ast.Expr) bool {
	if !e.IsEquality() {
		return false
	}
	a, b := e.Operand(0), e.Operand(1)
	return isWritten(a) && !isKnown(b) || isWritten(b) && !isKnown(a)
}

// isWritten reports whether a term is an array, object or set with variables.
func isWritten(t *ast.Term) bool {
	switch t.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return !t.IsGround()
	}
	return false
}

// isKnown reports whether a term has a value without variables once it is evaluated.
func isKnown(t *ast.Term) bool {
	_, isRef := t.Value.(ast.Ref)
	return isRef || t.IsGround() || ast.IsComprehension(t.Value)
}
