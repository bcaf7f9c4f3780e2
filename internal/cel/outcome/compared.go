package outcome

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Compared returns the texts with which an expression compares a chain of fields, such as `request.namespace`, for
// equality, as a member of a list, or as its beginning, end or part.
func Compared(expression, chain string) (texts []string) {
	e, ok := parse(expression)
	if !ok {
		return nil
	}
	isChain := func(e celast.Expr) bool {
		path, ok := pathOf(e)
		return ok && path == chain
	}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		call := e.AsCall()
		args := call.Args()
		switch name := call.FunctionName(); {
		case (name == operators.Equals || name == operators.NotEquals) && len(args) == 2 && isChain(args[0]):
			texts = append(texts, textsOf(args[1])...)
		case (name == operators.Equals || name == operators.NotEquals) && len(args) == 2 && isChain(args[1]):
			texts = append(texts, textsOf(args[0])...)
		case name == operators.In && len(args) == 2 && isChain(args[0]):
			texts = append(texts, textsOf(args[1])...)
		case call.IsMemberFunction() && isChain(call.Target()) && len(args) == 1 &&
			(name == "startsWith" || name == "endsWith" || name == "contains"):
			texts = append(texts, textsOf(args[0])...)
		}
	}))
	return texts
}

// textsOf returns a literal text, or the literal texts of a list.
func textsOf(e celast.Expr) (texts []string) {
	switch e.Kind() {
	case celast.LiteralKind:
		if s, isText := e.AsLiteral().(types.String); isText {
			return []string{string(s)}
		}
	case celast.ListKind:
		for _, item := range e.AsList().Elements() {
			texts = append(texts, textsOf(item)...)
		}
	}
	return texts
}
