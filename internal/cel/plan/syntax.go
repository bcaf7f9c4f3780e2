package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
)

func isLit(e celast.Expr, v ref.Val) bool {
	return e.Kind() == celast.LiteralKind && e.AsLiteral() == v
}

func isEmptyList(e celast.Expr) bool { return e.Kind() == celast.ListKind && e.AsList().Size() == 0 }

func isAccumulator(e celast.Expr, accu string) bool {
	return e.Kind() == celast.IdentKind && e.AsIdent() == accu
}

func isCall(e celast.Expr, function string, args int) bool {
	return e.Kind() == celast.CallKind && e.AsCall().FunctionName() == function && len(Operands(e.AsCall())) == args
}

// Operands are the arguments of a call, its target first.
func Operands(c celast.CallExpr) []celast.Expr {
	if !c.IsMemberFunction() {
		return c.Args()
	}
	return append([]celast.Expr{c.Target()}, c.Args()...)
}
