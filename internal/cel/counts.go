package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// comparisons are the operators by which an expression bounds a number.
var comparisons = []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Equals, operators.In}

// Counts are the places of the object whose numbers say how many items the expression makes, as in
// lists.range(object.spec.n), without those that it compares with something. hasAny is set if there are any of both.
func (p *Parsed) Counts() (places []string, hasAny bool) {
	tree, _ := p.tree()
	if tree == nil {
		return nil, false
	}
	ast := tree.NativeRep()
	_, counts := readsAndCountsOf(ast)
	if len(counts) == 0 {
		return nil, false
	}
	bounded := comparedIn(ast)
	for i := range counts {
		if text := counts[i].text(); !slices.Contains(bounded, text) && !slices.Contains(places, text) {
			places = append(places, text)
		}
	}
	return places, true
}

// comparedIn are the places that the expression compares with something.
func comparedIn(ast *celast.AST) (places []string) {
	c := readCollector{ast: ast}
	celast.PostOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || !slices.Contains(comparisons, e.AsCall().FunctionName()) {
			return
		}
		for _, operand := range e.AsCall().Args() {
			if r, ok := c.place(operand); ok {
				places = append(places, r.text())
			}
		}
	}))
	return places
}
