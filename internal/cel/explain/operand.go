package explain

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// operand looks through conversions, which change only the type of a value.
func (r *reader) operand(e celast.Expr) operand {
	e = r.unconverted(e)
	if i, ok := r.composited(e); ok {
		p := r.variables.all[i]
		if p.operand.kind != operandOther {
			return p.operand
		}
		return operand{about: p.operand.about, located: p.operand.located, text: r.text(e)}
	}
	if p, ok := r.place(e); ok {
		return operand{kind: operandPlace, place: p, text: p.text()}
	}
	if l := e; l.Kind() == celast.IdentKind {
		if it := r.find(l.AsIdent()); it != nil && it.text != "" {
			return operand{text: it.text}
		}
	}
	switch e.Kind() {
	case celast.LiteralKind:
		return operand{kind: operandLiteral, literal: e.AsLiteral(), text: literalText(e.AsLiteral())}
	case celast.ListKind:
		o := operand{kind: operandList}
		for _, item := range e.AsList().Elements() {
			x := r.operand(item)
			if x.kind != operandLiteral {
				return r.other(e)
			}
			o.list = append(o.list, x.literal)
		}
		return o
	}
	return r.other(e)
}

// other is an operand of which only the parts are known.
func (r *reader) other(e celast.Expr) operand {
	o := operand{text: r.text(e)}
	o.about, o.located = r.about(e)
	return o
}

// unconverted is the expression without conversions around it, and without the default for a
// missing value.
func (r *reader) unconverted(e celast.Expr) celast.Expr {
	for e.Kind() == celast.CallKind {
		call := e.AsCall()
		switch call.FunctionName() {
		case "string", "int", "uint", "double", "dyn", "duration", "timestamp", "quantity", "ip", "cidr", "semver":
			if call.IsMemberFunction() || len(call.Args()) != 1 {
				return e
			}
			e = call.Args()[0]
		case "orValue":
			if !call.IsMemberFunction() || call.Args()[0].Kind() != celast.LiteralKind && !empty(call.Args()[0]) {
				return e
			}
			e = call.Target()
		case "value":
			if !call.IsMemberFunction() || len(call.Args()) != 0 {
				return e
			}
			e = call.Target()
		case operators.Conditional:
			// has(x) ? x : 'default'
			args := call.Args()
			tested, ok := r.tested(args[0])
			if value, found := r.place(args[1]); !ok || !found || !value.equal(tested) ||
				args[2].Kind() != celast.LiteralKind && !empty(args[2]) {
				return e
			}
			e = args[1]
		default:
			return e
		}
	}
	return e
}

// empty reports whether the expression is [] or {}.
func empty(e celast.Expr) bool {
	n, ok := plan.ConstantSize(e)
	return ok && n == 0 && e.Kind() != celast.LiteralKind
}
