package plan

import "github.com/open-policy-agent/opa/v1/ast"

// sunk is a body in which each text is printed as late as it can be. OPA's partial evaluation often
// has the message first, and the condition behind it. Printing always has one value and never
// fails, so that the order does not matter to the result.
func sunk(body ast.Body) ast.Body {
	moved := false
	for _, e := range body {
		moved = moved || prints(e)
	}
	if !moved {
		return body
	}
	sorted := make(ast.Body, 0, len(body))
	var waiting []*ast.Expr
	for _, e := range body {
		if prints(e) {
			waiting = append(waiting, e)
			continue
		}
		vars := ast.NewVarSet()
		ast.WalkVars(e, func(v ast.Var) bool {
			vars.Add(v)
			return false
		})
		still := waiting[:0]
		for i, w := range waiting {
			result := w.Operand(2).Value.(ast.Var)
			behind := waiting[i+1:]
			if vars.Contains(result) || readBy(behind, result) && anyReads(behind, vars) {
				sorted = append(sorted, w)
			} else {
				still = append(still, w)
			}
		}
		waiting = still
		sorted = append(sorted, e)
	}
	return append(sorted, waiting...)
}

// readBy reports whether one of some expressions has a variable.
func readBy(exprs []*ast.Expr, v ast.Var) bool {
	found := false
	for _, e := range exprs {
		ast.WalkVars(e, func(one ast.Var) bool {
			found = found || one == v
			return found
		})
	}
	return found
}

// anyReads reports whether the value of one of some printing expressions is read by who has vars.
func anyReads(exprs []*ast.Expr, vars ast.VarSet) bool {
	for _, e := range exprs {
		if vars.Contains(e.Operand(2).Value.(ast.Var)) {
			return true
		}
	}
	return false
}

// prints reports whether an expression gives a variable a text by a format that is known, and an
// array: it cannot fail.
func prints(e *ast.Expr) bool {
	terms, ok := e.Terms.([]*ast.Term)
	if !ok || e.Negated || len(e.With) > 0 || len(terms) != 4 || !e.IsCall() {
		return false
	}
	if ref, ok := terms[0].Value.(ast.Ref); !ok || !ref.Equal(ast.Sprintf.Ref()) {
		return false
	}
	_, hasFormat := terms[1].Value.(ast.String)
	_, hasItems := terms[2].Value.(*ast.Array)
	v, intoVar := terms[3].Value.(ast.Var)
	return hasFormat && hasItems && intoVar && !v.IsWildcard()
}
