package explain

import (
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// loopAtom is a demand on a list as a whole, or one that holds for several things that the object is compared with.
func (d *deriver) loopAtom(l loop, want bool) (atom, bool) {
	over := d.operand(l.over)
	ofObject := over.kind == operandPlace && over.ofObject()
	some := l.kind == loopExists && want || l.kind == loopAll && !want
	if a, ok := d.kept(l, over); ok && want {
		return a, true
	}
	if !ofObject {
		return d.quantified(l, over, some, want)
	}
	switch {
	case some:
		item, ok := d.items(l, over, want)
		return plain(over, "contain "+article(item), "contains "+article(item)), ok
	case l.kind == loopExistsOne && want:
		if a, ok := d.unique(l, over); ok {
			return a, true
		}
		item, ok := d.items(l, over, true)
		return plain(over, "contain exactly one "+item, "contains exactly one "+item), ok
	case l.kind == loopExists && !want:
		item, ok := d.items(l, over, true)
		return negated(over, "contain "+article(item), "contains no "+item), ok
	case l.kind == loopAll:
		body, ok := d.itemSubject(l, over, want)
		return plain(over, body.be, body.is), ok
	}
	return atom{}, false
}

// kept is old.xs.all(x, x in new.xs): nothing may be taken away.
func (d *deriver) kept(l loop, over operand) (a atom, ok bool) {
	if l.kind != loopAll || l.second != "" || over.kind != operandPlace || over.place.base != baseOld ||
		l.body.Kind() != celast.CallKind || l.body.AsCall().FunctionName() != operators.In {
		return atom{}, false
	}
	args := l.body.AsCall().Args()
	p, isPlace := d.place(d.unconverted(args[1]))
	if args[0].Kind() != celast.IdentKind || args[0].AsIdent() != l.name || !isPlace || p.base != baseObject ||
		!sameSteps(p.steps, over.place.steps) {
		return atom{}, false
	}
	subject := operand{kind: operandPlace, place: p, text: p.text()}
	return plain(subject, "contain everything that it contained before",
		"contains everything that it contained before"), true
}

// quantified is a demand on the object for some or for all items of the other operand:
// ['a', 'b'].exists(p, object.spec.x.startsWith(p)).
func (d *deriver) quantified(l loop, over operand, some, want bool) (a atom, ok bool) {
	if l.kind != loopExists && l.kind != loopAll {
		return atom{}, false
	}
	d.iterate(l, over, func() {
		c := d.words(l.body, want)
		if c.kind != clauseAtom {
			return
		}
		a, ok = *c.atom, c.atom.kind == atomPlain && c.atom.subject.kind != operandLiteral
		// "must not start with 'a' or 'b'" is said of all, "must start with 'a' or 'b'" of some.
		ok = ok && some != a.exempts && a.subject.text != "" || ok && some != a.exempts &&
			a.subject.kind == operandPlace
		if a.exempts {
			a.must = strings.Replace(a.must, "an item of ", "any item of ", 1)
			a.is = strings.Replace(a.is, "an item of ", "any item of ", 1)
		}
		a.supported = nil
		if len(over.list) > 0 && some && strings.HasPrefix(a.is, "is equal to ") {
			texts := enumerate(literalTexts(over.list), "or")
			a.kind, a.supported, a.must, a.is = atomSupported, over.list, "must be "+texts, "is "+texts
		}
	})
	return a, ok
}

// unique is xs.exists_one(y, y.name == x.name) in a loop over the same list, whose item x is then the only one of its
// name.
func (d *deriver) unique(l loop, over operand) (a atom, ok bool) {
	d.iterate(l, over, func() {
		inner := d.find(l.name)
		if l.second != "" || !inner.known {
			return
		}
		var keys [][]step
		var outer operandLocation
		for _, part := range d.conjuncts(l.body, true, nil) {
			if p, isTest := d.tested(part.expr); isTest && part.want && p.within(inner.place) {
				continue
			}
			if part.expr.Kind() != celast.CallKind || part.expr.AsCall().FunctionName() != operators.Equals ||
				!part.want {
				return
			}
			args := part.expr.AsCall().Args()
			x, y := d.operand(args[0]), d.operand(args[1])
			if x.kind != operandPlace || y.kind != operandPlace {
				return
			}
			if x.place.within(inner.place) {
				x, y = y, x
			}
			if x.place.base != inner.place.base || x.place.level >= inner.place.level || !y.place.within(inner.place) ||
				!sameSteps(x.place.steps, y.place.steps) {
				return
			}
			outer = operandLocation{base: x.place.base, level: x.place.level}
			keys = append(keys, x.place.steps)
		}
		if len(keys) == 0 || !d.over[outer.level].equal(over.place) {
			return
		}
		subject := operand{kind: operandPlace, place: outer}
		if len(keys) == 1 {
			subject.place = outer.follow(keys[0]...)
			subject.text = subject.place.text()
		}
		a, ok = atom{kind: atomUnique, subject: subject, must: "must be unique", is: "is unique", keys: keys}, true
	})
	return a, ok
}

// filtered is a demand on how many items are as the loop's body says.
func (d *deriver) filtered(l loop, op string, n int64) (atom, bool) {
	over := d.operand(l.over)
	if over.kind != operandPlace || !over.ofObject() {
		return atom{}, false
	}
	item, ok := d.items(l, over, true)
	if !ok {
		return atom{}, false
	}
	items := strings.Replace(strings.Replace(item, "item ", "items ", 1), "key ", "keys ", 1)
	op, n = normalSize(op, n)
	switch {
	case op == operators.LessEquals && n == 0:
		return negated(over, "contain "+article(item), "contains no "+item), true
	case op == operators.GreaterEquals && n == 1:
		return plain(over, "contain "+article(item), "contains "+article(item)), true
	case op == operators.LessEquals && n == 1:
		return plain(over, "contain at most one "+item, "contains at most one "+item), true
	case op == operators.Equals && n == 1:
		return plain(over, "contain exactly one "+item, "contains exactly one "+item), true
	}
	words := map[string]string{operators.LessEquals: "at most ", operators.GreaterEquals: "at least ",
		operators.Equals: "exactly "}[op]
	if words == "" {
		return atom{}, false
	}
	number := literalText(types.Int(n))
	return plain(over, "contain "+words+number+" "+items, "contains "+words+number+" "+items), true
}
