package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Names returns the string literals of an expression and the names of the fields
// that it reads, each once and in the order of their first use; nothing for what
// is no expression.
func Names(expression string) (literals, fields []string) {
	ast, issues := base().Parse(expression)
	if issues != nil {
		return nil, nil
	}
	add := func(to *[]string, name string) {
		if name != "" && !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.LiteralKind:
			if s, ok := e.AsLiteral().(types.String); ok {
				add(&literals, string(s))
			}
		case celast.SelectKind:
			name := e.AsSelect().FieldName()
			if plain, ok := apiservercel.Unescape(name); ok {
				name = plain
			}
			add(&fields, name)
		}
	}))
	return literals, fields
}
