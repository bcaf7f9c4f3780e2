package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// Literals returns the string literals of an expression, each once and in the order of their first
// use; nothing for what is no expression.
func Literals(expression string) (literals []string) {
	ast, issues := parse(expression)
	if issues != nil {
		return nil
	}
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.LiteralKind {
			return
		}
		if s, ok := e.AsLiteral().(types.String); ok && s != "" && !slices.Contains(literals, string(s)) {
			literals = append(literals, string(s))
		}
	}))
	return literals
}
