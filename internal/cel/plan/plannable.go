package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// IsPlannable reports whether cel-go surely makes a plan of a checked expression, so that it need not be asked: what
// the expression consists of is among what cel-go refuses in no case. It refuses patterns that do not compile,
// conversions of literals that fail, and indexes of some types.
func IsPlannable(ast *celast.AST) bool {
	p := plannable{ast}
	return p.is(ast.Expr())
}

type plannable struct{ ast *celast.AST }

func (p plannable) is(e celast.Expr) bool {
	switch e.Kind() {
	case celast.LiteralKind:
		return true
	case celast.IdentKind:
		return p.isVariable(e)
	case celast.SelectKind:
		if _, isQualified := p.ast.ReferenceMap()[e.ID()]; isQualified {
			return p.isVariable(e)
		}
		return p.is(e.AsSelect().Operand())
	case celast.ListKind:
		return len(e.AsList().OptionalIndices()) == 0 && p.are(e.AsList().Elements())
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		return p.is(c.IterRange()) && p.is(c.AccuInit()) && p.is(c.LoopCondition()) && p.is(c.LoopStep()) &&
			p.is(c.Result())
	case celast.CallKind:
		return p.isCall(e.AsCall())
	}
	return false
}

func (p plannable) are(es []celast.Expr) bool {
	for _, e := range es {
		if !p.is(e) {
			return false
		}
	}
	return true
}

// isVariable reports whether a name is one of a variable, and not of a type or constant.
func (p plannable) isVariable(e celast.Expr) bool {
	r, isKnown := p.ast.ReferenceMap()[e.ID()]
	return !isKnown || r.Value == nil && p.ast.GetType(e.ID()).Kind() != types.TypeKind
}

func (p plannable) isCall(call celast.CallExpr) bool {
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		operators.Conditional,
		operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.In,
		overloads.Size, overloads.StartsWith, overloads.EndsWith, overloads.Contains:
	case operators.Index:
		switch at := call.Args()[1]; at.Kind() {
		case celast.LiteralKind:
			switch at.AsLiteral().(type) {
			case types.String, types.Int:
			default:
				return false
			}
		case celast.IdentKind, celast.SelectKind:
		default:
			return false
		}
	default:
		return false
	}
	return (!call.IsMemberFunction() || p.is(call.Target())) && p.are(call.Args())
}
