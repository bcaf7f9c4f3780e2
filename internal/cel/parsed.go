package cel

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// A Parsed is an expression that was parsed once, for all who ask about it before it runs: to parse
// it takes longer than to check it.
type Parsed struct {
	text   string
	ast    *celgo.Ast    // nil if it cannot be parsed
	issues *celgo.Issues // nil if it can
}

// Parse parses an expression.
func Parse(expression string) (p *Parsed) {
	p = &Parsed{text: expression}
	defer func() {
		if r := recover(); r != nil {
			p.ast, p.issues = nil, panicked(r)
		}
	}()
	parsed, issues := base().Parse(expression)
	if issues.Err() != nil {
		p.issues = issues
		return p
	}
	p.ast = parsed
	return p
}

// readsVariable reports whether the expression surely reads a variable that the request gives.
func (p *Parsed) readsVariable() bool {
	reads, binds := map[string]bool{}, map[string]bool{}
	ast.PreOrderVisit(p.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			reads[e.AsIdent()] = true
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			binds[c.IterVar()], binds[c.IterVar2()], binds[c.AccuVar()] = true, true, true
		}
	}))
	for name := range reads {
		if _, isGiven := plan.UsesOf[name]; isGiven && !binds[name] {
			return true
		}
	}
	return false
}
