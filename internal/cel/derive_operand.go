package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// operandKind says what is known of an operand.
type operandKind uint8

const (
	operandOther   operandKind = iota
	operandPlace               // stands at one place
	operandLiteral             // is written in the expression
	operandList                // is a list of literals
)

// An operand is a part of a comparison.
type operand struct {
	kind    operandKind
	place   place
	literal ref.Val
	list    []ref.Val
	text    string // as a message names it

	// of operandOther: what all the places that it is made of have in common
	about   place
	located bool
}

// judged tells whether the operand is about what is judged, and not about the request or the object before.
func (o operand) judged() bool {
	if o.kind == operandPlace {
		return o.place.judged()
	}
	return o.located
}

// operand looks through conversions, which change the type of a value and not what it is.
func (r *reader) operand(e celast.Expr) operand {
	e = r.unconverted(e)
	if i, ok := r.composited(e); ok {
		p := r.variables.programs[i]
		if p.meaning != nil && p.meaning.operand.kind != operandOther {
			return p.meaning.operand
		}
		return operand{about: place{base: baseObject, steps: p.field}, located: p.field != nil, text: r.text(e)}
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

// other is an operand of which no more is known than what it is made of.
func (r *reader) other(e celast.Expr) operand {
	o := operand{text: r.text(e)}
	o.about, o.located = r.about(e)
	return o
}

// unconverted is the expression without conversions around it, and without the value that stands in for a missing one.
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
			if value, found := r.place(args[1]); !ok || !found || !value.equal(tested) || args[2].Kind() != celast.LiteralKind && !empty(args[2]) {
				return e
			}
			e = args[1]
		default:
			return e
		}
	}
	return e
}

// empty tells whether the expression is [] or {}.
func empty(e celast.Expr) bool {
	n, ok := constantSize(e)
	return ok && n == 0 && e.Kind() != celast.LiteralKind
}

// tested is the place of which the expression asks whether it is set.
func (r *reader) tested(e celast.Expr) (place, bool) {
	switch e.Kind() {
	case celast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			p, ok := r.place(s.Operand())
			if !ok || p.base == baseKey {
				return place{}, false
			}
			return p.follow(r.member(p, s.Operand(), s.FieldName(), false)), true
		}
	case celast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == "hasValue" && call.IsMemberFunction():
			return r.place(call.Target())
		case call.FunctionName() == operators.In:
			// 'a' in labels
			name, ok := stringLiteral(call.Args()[0])
			p, found := r.place(call.Args()[1])
			if ok && found && p.base != baseKey && (r.ast.GetType(call.Args()[1].ID()).Kind() == types.MapKind || isMap(p.steps)) {
				return p.follow(step{name: name, key: true}), true
			}
		}
	}
	return place{}, false
}

// about is what the places in the expression have in common: those in the item of the innermost loop, if there are any.
func (r *reader) about(e celast.Expr) (p place, ok bool) {
	for level := r.level; level >= 0; level-- {
		c := fieldCollector{reader: reader{ast: r.ast, variables: r.variables, scope: slices.Clip(r.scope)}, level: level}
		c.collect(e)
		if steps, ok := c.common(); ok {
			return place{base: c.base, level: level, name: c.name, steps: steps}, true
		}
	}
	return place{}, false
}

func stringLiteral(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
