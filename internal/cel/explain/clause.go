package explain

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel"
)

// A demand is an expression that must be true, or must not.
type demand struct {
	expr celast.Expr
	want bool
}

// clause takes apart that the expression must be true, or that it must not.
func (d *deriver) clause(e celast.Expr, want bool) *clause {
	c := d.take(e, want)
	c.want = want
	if c.source == "" {
		c.source = d.source(e)
	}
	return c
}

func (d *deriver) take(e celast.Expr, want bool) *clause {
	if parts := d.conjuncts(e, want, nil); len(parts) > 1 {
		c := &clause{kind: clauseAll}
		for _, part := range parts {
			x := d.clause(part.expr, part.want)
			x.program = d.plan(part.expr)
			c.parts = append(c.parts, x)
		}
		return c
	} else if parts[0].expr != e {
		return d.clause(parts[0].expr, parts[0].want)
	}
	if parts := d.disjuncts(e, want, nil); len(parts) > 1 {
		return d.unless(e, parts, want)
	}
	switch e.Kind() {
	case celast.SelectKind:
		if i, ok := d.composited(e); ok {
			return d.variable(e, i, want)
		}
	case celast.CallKind:
		if e.AsCall().FunctionName() == operators.Conditional {
			return d.choice(e.AsCall().Args(), want)
		}
	case celast.ComprehensionKind:
		if l, ok := loopOf(e); ok && (l.kind == loopAll && want || l.kind == loopExists && !want) {
			if c, ok := d.each(e, l, want); ok {
				return c
			}
		}
	}
	if c, ok := d.union(e, want); ok {
		return c
	}
	return d.atomic(e, want)
}

// atomic is a clause that is not taken apart.
func (d *deriver) atomic(e celast.Expr, want bool) *clause {
	a := d.atom(e, want)
	return &clause{kind: clauseAtom, atom: &a, source: d.source(e)}
}

// conjuncts are the conditions that must hold all together.
func (d *deriver) conjuncts(e celast.Expr, want bool, to []demand) []demand {
	if e.Kind() == celast.CallKind {
		call := e.AsCall()
		args := call.Args()
		switch name := call.FunctionName(); {
		case name == operators.LogicalNot:
			return d.conjuncts(args[0], !want, to)
		case name == operators.LogicalAnd && want, name == operators.LogicalOr && !want:
			return d.conjuncts(args[1], want, d.conjuncts(args[0], want, to))
		case name == operators.Conditional && isLiteral(args[1], types.Bool(!want)): // c ? false : x
			return d.conjuncts(args[2], want, d.conjuncts(args[0], false, to))
		case name == operators.Conditional && isLiteral(args[2], types.Bool(!want)): // c ? x : false
			return d.conjuncts(args[1], want, d.conjuncts(args[0], true, to))
		case name == operators.Equals, name == operators.NotEquals:
			if x, is, ok := d.compared(args); ok {
				return d.conjuncts(x, is == (want == (name == operators.Equals)), to)
			}
		}
	}
	return append(to, demand{e, want})
}

// compared is the condition in 'x.exists(…) == true' and with false. A field that is compared is no condition.
func (d *deriver) compared(args []celast.Expr) (e celast.Expr, is, ok bool) {
	for i := range args {
		other := args[1-i]
		b, literal := args[i].AsLiteral().(types.Bool)
		if args[i].Kind() != celast.LiteralKind || !literal || d.ast.GetType(other.ID()).Kind() != types.BoolKind {
			continue
		}
		if _, field := d.place(d.unconverted(other)); !field {
			return other, bool(b), true
		}
	}
	return nil, false, false
}

// disjuncts are the conditions that need not all hold, but one at least.
func (d *deriver) disjuncts(e celast.Expr, want bool, to []demand) []demand {
	if e.Kind() == celast.CallKind {
		call := e.AsCall()
		args := call.Args()
		switch name := call.FunctionName(); {
		case name == operators.LogicalNot:
			return d.disjuncts(args[0], !want, to)
		case name == operators.LogicalOr && want, name == operators.LogicalAnd && !want:
			return d.disjuncts(args[1], want, d.disjuncts(args[0], want, to))
		case name == operators.Conditional && isLiteral(args[1], types.Bool(want)): // c ? true : x
			return d.disjuncts(args[2], want, d.disjuncts(args[0], true, to))
		case name == operators.Conditional && isLiteral(args[2], types.Bool(want)): // c ? x : true
			return d.disjuncts(args[1], want, append(to, demand{args[0], false}))
		}
	}
	return append(to, demand{e, want})
}

// unless is a demand with its exemptions: what must hold in the end is the part that exempts from nothing.
func (d *deriver) unless(e celast.Expr, parts []demand, want bool) *clause {
	clauses := make([]*clause, len(parts))
	var demands []int
	for i, part := range parts {
		clauses[i] = d.clause(part.expr, part.want)
		if !clauses[i].exempts() {
			demands = append(demands, i)
		}
	}
	if len(demands) == 0 {
		last := len(parts) - 1
		for i := last; i >= 0; i-- {
			if clauses[i].ofObject() {
				last = i
				break
			}
		}
		demands = []int{last}
	}
	if len(demands) > 1 {
		// The only demand that is made of several is the one to say more about.
		var composed []int
		for _, i := range demands {
			if clauses[i].kind != clauseAtom {
				composed = append(composed, i)
			}
		}
		if len(composed) == 1 {
			demands = composed
		}
	}
	c := &clause{kind: clauseUnless}
	for i, part := range parts {
		if !slices.Contains(demands, i) {
			c.when = append(c.when, d.words(part.expr, !part.want).statements()...)
		}
	}
	if len(demands) == 1 {
		c.parts = []*clause{clauses[demands[0]]}
		return c
	}
	alternatives := make([]*clause, len(demands))
	for i, at := range demands {
		alternatives[i] = clauses[at]
	}
	c.source = d.source(e)
	any := anyOf(alternatives)
	c.parts = []*clause{{kind: clauseAtom, atom: &any, source: c.source, want: want}}
	return c
}

// words takes a condition apart if nothing of it will be evaluated.
func (d *deriver) words(e celast.Expr, want bool) *clause {
	inert := d.inert
	d.inert = true
	defer func() { d.inert = inert }()
	return d.clause(e, want)
}

// choice is a ? b : c where b and c are demands.
func (d *deriver) choice(args []celast.Expr, want bool) *clause {
	return &clause{
		kind:      clauseChoice,
		program:   d.plan(args[0]),
		parts:     []*clause{d.clause(args[1], want), d.clause(args[2], want)},
		when:      d.words(args[0], true).statements(),
		otherwise: d.words(args[0], false).statements(),
	}
}

// variable is the condition behind a variable of the policy.
func (d *deriver) variable(e celast.Expr, i int, want bool) *clause {
	m := d.variables.all[i]
	if m.whenTrue == nil || d.level > 0 {
		return d.atomic(e, want)
	}
	c := *m.whenFalse
	if want {
		c = *m.whenTrue
	}
	return &c
}

// each is a demand on every item.
func (d *deriver) each(e celast.Expr, l loop, want bool) (*clause, bool) {
	over, items := l.over, d.operand(l.over)
	var mapped *cel.Program
	var as []step
	if m, ok := loopOf(l.over); ok && m.kind == loopMap && l.second == "" {
		// xs.map(x, x.name).all(n, …) constrains the names of the items.
		if source := d.operand(m.over); source.kind == operandPlace && !d.goesThroughMap(m.over, source.place) {
			ok := false
			d.iterate(m, source, func() {
				p, isPlace := d.place(m.body)
				if it := d.find(m.name); isPlace && it.known && p.within(it.place) {
					as, ok = p.steps[len(it.place.steps):], true
				}
			})
			if ok {
				mapped, over, items = d.plan(l.over), m.over, source
			}
		}
	}
	if !items.ofObject() || items.kind == operandPlace && items.place.base == baseKey {
		return nil, false
	}
	c := &clause{kind: clauseEach, source: d.source(e),
		eachItem: &eachItem{items: items, over: d.plan(over), mapped: mapped, names: [2]string{l.name, l.second}}}
	if items.kind != operandPlace {
		// Items of lists that were put together are found by their positions.
		items = operand{kind: operandPlace, place: items.about}
	}
	var ok bool
	c.description, ok = d.itemSubject(l, items, want)
	if !ok {
		c.description = sentence{}
	}
	c.level = d.level + 1
	d.iterate(l, items, func() {
		if it := d.find(l.name); mapped != nil {
			it.place = it.place.follow(as...)
		}
		body := d.clause(l.body, want)
		body.program = d.plan(l.body)
		body.want = want
		c.parts = []*clause{body}
	})
	return c, true
}
