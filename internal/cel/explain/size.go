package explain

import (
	"fmt"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// sizes is a demand on the size of a string, list or map.
func (d *deriver) sizes(op string, left, right celast.Expr) (atom, bool) {
	sized, ok := sizeOf(left)
	if !ok {
		if sized, ok = sizeOf(right); !ok {
			return atom{}, false
		}
		left, right, op = right, left, mirrored[op]
	}
	if right.Kind() != celast.LiteralKind {
		return atom{}, false
	}
	n, ok := right.AsLiteral().(types.Int)
	if !ok || n < 0 {
		return atom{}, false
	}
	if l, ok := loopOf(sized); ok && l.kind == loopFilter {
		return d.filtered(l, op, int64(n))
	}
	subject := d.operand(sized)
	if subject.kind == operandLiteral || subject.kind == operandList {
		return atom{}, false
	}
	a := atom{kind: atomSize, subject: subject}
	a.op, a.size = normalSize(op, int64(n))
	words := sizeWords(a.op, a.size)
	a.must, a.is = "must have "+words, "has "+words
	switch {
	case a.op == operators.LessEquals && a.size == 0:
		a.must, a.is = "must be empty", "is empty"
	case a.op == operators.GreaterEquals && a.size == 1:
		a.must, a.is = "must not be empty", "is not empty"
		a.exempts = op == operators.NotEquals
	}
	return a, true
}

func sizeOf(e celast.Expr) (celast.Expr, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "size" {
		return nil, false
	}
	args := plan.Operands(e.AsCall())
	return args[0], len(args) == 1
}

// normalSize turns strict bounds of whole numbers into inclusive ones.
func normalSize(op string, n int64) (string, int64) {
	switch op {
	case operators.Less:
		return operators.LessEquals, n - 1
	case operators.Greater:
		return operators.GreaterEquals, n + 1
	case operators.NotEquals:
		if n == 0 {
			return operators.GreaterEquals, 1
		}
	case operators.Equals:
		if n == 0 {
			return operators.LessEquals, 0
		}
	}
	return op, n
}

func sizeWords(op string, n int64) string {
	switch op {
	case operators.LessEquals:
		return fmt.Sprintf("a size of at most %d", n)
	case operators.GreaterEquals:
		return fmt.Sprintf("a size of at least %d", n)
	case operators.NotEquals:
		return fmt.Sprintf("a size other than %d", n)
	}
	return fmt.Sprintf("a size of %d", n)
}

// membership is x in y.
func (d *deriver) membership(left, right celast.Expr, want bool) (atom, bool) {
	x, y := d.operand(left), d.operand(right)
	switch {
	case y.kind == operandList && x.kind != operandLiteral:
		if len(y.list) == 1 {
			return equality(x, operand{kind: operandLiteral, literal: y.list[0], text: literalText(y.list[0])}, want)
		}
		texts := enumerate(literalTexts(y.list), "or")
		if !want {
			return negated(x, "be "+texts, "is not "+texts), true
		}
		a := plain(x, "be "+texts, "is "+texts)
		if x.kind == operandPlace && len(y.list) > 0 {
			a.kind, a.supported = atomSupported, y.list
		}
		return a, len(y.list) > 0
	case x.kind == operandLiteral && y.kind == operandPlace && y.ofObject() && y.place.base != baseKey:
		a := atom{kind: atomMember, subject: y, literal: x.literal, absent: !want, exempts: !want}
		a.must, a.is = "must contain "+x.text, "contains "+x.text
		if !want {
			a.must, a.is = "must not contain "+x.text, "does not contain "+x.text
		}
		return a, true
	case x.rank() < y.rank() && y.text != "" && x.text != "":
		x, y = y, x
		if want {
			return plain(x, "contain "+y.text, "contains "+y.text), true
		}
		return negated(x, "contain "+y.text, "does not contain "+y.text), true
	case y.text == "":
		return atom{}, false
	case want:
		return plain(x, "be one of "+y.text, "is one of "+y.text), true
	}
	return negated(x, "be one of "+y.text, "is not one of "+y.text), true
}
