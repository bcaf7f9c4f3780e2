package explain

import (
	"fmt"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// atom puts into words that the expression must be true, or that it must not.
func (d *deriver) atom(e celast.Expr, want bool) atom {
	a, ok := d.worded(e, want)
	if !ok || a.subject.kind != operandPlace && a.subject.text == "" {
		return atom{subject: d.other(e)}
	}
	return a
}

func (d *deriver) worded(e celast.Expr, want bool) (atom, bool) {
	if p, ok := d.tested(e); ok {
		return presence(p, want), true
	}
	switch e.Kind() {
	case celast.SelectKind, celast.IdentKind:
		return truth(d.operand(e), want)
	case celast.CallKind:
		return d.call(e, want)
	case celast.ComprehensionKind:
		if l, ok := loopOf(e); ok {
			return d.loopAtom(l, want)
		}
	}
	return atom{}, false
}

func presence(p operandLocation, want bool) atom {
	a := atom{kind: atomPresence, subject: operand{kind: operandPlace, place: p, text: p.text()}, must: "must be set",
		is: "is set"}
	if !want {
		a.kind, a.must, a.is, a.exempts = atomAbsence, "may not be set", "is not set", true
	}
	return a
}

// truth demands of a bool that it be true or false.
func truth(o operand, want bool) (atom, bool) {
	a := plain(o, fmt.Sprintf("be %t", want), fmt.Sprintf("is %t", want))
	a.exempts = !want
	return a, o.kind != operandLiteral
}

func plain(subject operand, be, is string) atom {
	return atom{kind: atomPlain, subject: subject, must: "must " + be, is: is}
}

// negated is plain for what must not be.
func negated(subject operand, be, isNot string) atom {
	return atom{kind: atomPlain, subject: subject, must: "must not " + be, is: isNot, exempts: true}
}

func (d *deriver) call(e celast.Expr, want bool) (atom, bool) {
	call := e.AsCall()
	name := call.FunctionName()
	switch name {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals:
		if !want {
			name = opposite[name]
		}
		return d.comparison(name, call.Args()[0], call.Args()[1])
	case operators.In:
		return d.membership(call.Args()[0], call.Args()[1], want)
	case "isLessThan", "isGreaterThan":
		if !call.IsMemberFunction() || len(call.Args()) != 1 {
			return atom{}, false
		}
		op := operators.Less
		if name == "isGreaterThan" {
			op = operators.Greater
		}
		if !want {
			op = opposite[op]
		}
		return d.comparison(op, call.Target(), call.Args()[0])
	case "hasValue":
		return d.formatted(call, !want)
	}
	if words, ok := textTests[name]; ok {
		return d.textTest(call, words.demand, words.statement, want)
	}
	if what, ok := kindTests[name]; ok && !call.IsMemberFunction() && len(call.Args()) == 1 {
		return ofKind(d.operand(call.Args()[0]), what, want), true
	}
	return truth(d.operand(e), want)
}

func ofKind(subject operand, what string, want bool) atom {
	if want {
		return plain(subject, "be "+valid(what), "is "+valid(what))
	}
	return negated(subject, "be "+what, "is not "+valid(what))
}

// formatted is format.NAME().validate(x).hasValue(), which says that x is not of the format.
func (d *deriver) formatted(call celast.CallExpr, want bool) (atom, bool) {
	target := call.Target()
	if target.Kind() != celast.CallKind || target.AsCall().FunctionName() != "validate" ||
		len(target.AsCall().Args()) != 1 {
		return atom{}, false
	}
	validate := target.AsCall()
	if validate.Target().Kind() != celast.CallKind {
		return atom{}, false
	}
	format := validate.Target().AsCall()
	name := format.FunctionName()
	if name == "format.named" && len(format.Args()) == 1 {
		name, _ = stringLiteral(format.Args()[0])
	}
	what, ok := formats[name[len(commonStart(name, "format.")):]]
	if !ok {
		return atom{}, false
	}
	return ofKind(d.operand(validate.Args()[0]), what, want), true
}

func commonStart(s, prefix string) string {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return prefix
	}
	return ""
}

func (d *deriver) textTest(call celast.CallExpr, demand, statement string, want bool) (atom, bool) {
	args := plan.Operands(call)
	if len(args) != 2 {
		return atom{}, false
	}
	subject, other := d.operand(args[0]), d.operand(args[1])
	if other.text == "" {
		return atom{}, false
	}
	if want {
		return plain(subject, demand+" "+other.text, statement+" "+other.text), true
	}
	return negated(subject, demand+" "+other.text, "does not "+demand+" "+other.text), true
}

// comparison is a demand on the operand that belongs to the object; if both do, on the first.
func (d *deriver) comparison(op string, left, right celast.Expr) (atom, bool) {
	if a, ok := d.compareTo(op, left, right); ok {
		return a, true
	}
	if a, ok := d.sizes(op, left, right); ok {
		return a, true
	}
	a, b := d.operand(left), d.operand(right)
	if a.rank() < b.rank() {
		a, b, op = b, a, mirrored[op]
	}
	if a.kind == operandLiteral || a.kind == operandList {
		return atom{}, false
	}
	if is, ok := d.previous(op, a, b); ok {
		return is, true
	}
	switch op {
	case operators.Equals, operators.NotEquals:
		return equality(a, b, op == operators.Equals)
	}
	if b.text == "" {
		return atom{}, false
	}
	words := comparisons[op] + " " + b.text
	return plain(a, "be "+words, "is "+words), true
}

// rank says which of two operands a demand names.
func (o operand) rank() int {
	switch {
	case o.kind == operandPlace && o.place.ofObject():
		return 3
	case o.ofObject():
		return 2
	case o.kind == operandLiteral || o.kind == operandList:
		return 0
	}
	return 1
}

func equality(a, b operand, want bool) (atom, bool) {
	if b.kind == operandLiteral {
		switch v := b.literal.(type) {
		case types.String:
			if v == "" {
				b.text = "empty"
			}
		case types.Bool:
			if !want { // x != true holds for a missing x too
				return negated(a, "be "+b.text, "is not "+b.text), true
			}
		}
		if want {
			p := plain(a, "be "+b.text, "is "+b.text)
			if b.text != "empty" && a.kind == operandPlace {
				p.supported = []ref.Val{b.literal}
			}
			return p, true
		}
		return negated(a, "be "+b.text, "is not "+b.text), true
	}
	if b.kind == operandList {
		b.text = "[" + enumerate(literalTexts(b.list), "and") + "]"
		if len(b.list) == 0 {
			b.text = "empty"
		}
	}
	if b.text == "" {
		return atom{}, false
	}
	if want {
		return plain(a, "be equal to "+b.text, "is equal to "+b.text), true
	}
	return negated(a, "be equal to "+b.text, "differs from "+b.text), true
}

// previous is a demand on a value that compares it with what it was before an update.
func (d *deriver) previous(op string, a, b operand) (atom, bool) {
	if a.kind != operandPlace || b.kind != operandPlace || a.place.base != baseObject || b.place.base != baseOld ||
		!sameSteps(a.place.steps, b.place.steps) {
		return atom{}, false
	}
	switch op {
	case operators.Equals:
		return atom{kind: atomImmutable, past: true, subject: a, must: validation.FieldImmutableErrorMsg,
			is: "is as it was"}, true
	case operators.NotEquals:
		return negated(a, "be what it was", "is not what it was"), true
	}
	words := comparisons[op] + " its previous value"
	later := plain(a, "be "+words, "is "+words)
	later.past = true
	return later, true
}

func sameSteps(a, b []step) bool {
	return operandLocation{steps: a}.equal(operandLocation{steps: b})
}

// compareTo is quantity(a).compareTo(quantity(b)) < 0, and versions likewise.
func (d *deriver) compareTo(op string, left, right celast.Expr) (atom, bool) {
	if left.Kind() != celast.CallKind || right.Kind() != celast.LiteralKind || right.AsLiteral() != types.IntZero {
		return atom{}, false
	}
	call := left.AsCall()
	if call.FunctionName() != "compareTo" || !call.IsMemberFunction() || len(call.Args()) != 1 {
		return atom{}, false
	}
	return d.comparison(op, call.Target(), call.Args()[0])
}
