package plan

import "github.com/open-policy-agent/opa/v1/ast"

// An assign puts a value into a slot.
type assign struct {
	seq
	from source
	into int
}

func (a *assign) run(m *machine) bool {
	m.slots[a.into] = a.from.get(m)
	return a.next.run(m)
}

// A truthy goes on unless the value is false.
type truthy struct {
	seq
	of source
}

func (t *truthy) run(m *machine) bool {
	of := t.of.get(m)
	return of.isFalse() || t.next.run(m)
}

// An equal goes on if two values are equal.
type equal struct {
	seq
	a, b source
}

func (e *equal) run(m *machine) bool { return !isEqual(e.a.get(m), e.b.get(m)) || e.next.run(m) }

// A mayEqual goes on if a value has the type of a comprehension's. OPA does not evaluate it otherwise,
// unless the value is a set.
type mayEqual struct {
	seq
	of            source
	comprehension ast.Value
}

func (e *mayEqual) run(m *machine) bool {
	return !mayBe(rank(e.of.get(m)), e.comprehension) || e.next.run(m)
}

func canEqual(v, comprehension ast.Value) bool {
	return mayBe(rank(Made(ast.NewTerm(v))), comprehension)
}

// mayBe is canEqual for a value of a kind.
func mayBe(kind Kind, comprehension ast.Value) bool {
	ok := false
	switch kind {
	case List:
		_, ok = comprehension.(*ast.ArrayComprehension)
	case Object:
		_, ok = comprehension.(*ast.ObjectComprehension)
	case Set:
		ok = true
	}
	return ok
}

// A never does not go on.
type never struct{ seq }

func (*never) run(*machine) bool { return true }

// An arrayOf takes an array of a length apart.
type arrayOf struct {
	seq
	from source
	into []int
}

func (a *arrayOf) run(m *machine) bool {
	of := a.from.get(m)
	if rank(of) != List || of.length() != len(a.into) {
		return true
	}
	for i, slot := range a.into {
		m.slots[slot] = of.item(i)
	}
	return a.next.run(m)
}

// An objectOf takes an object of known keys apart, which has no others.
type objectOf struct {
	seq
	from source
	keys []source
	into []int
}

func (o *objectOf) run(m *machine) bool {
	of := o.from.get(m)
	if rank(of) != Object || of.length() != len(o.into) {
		return true
	}
	for i, slot := range o.into {
		v := of.Member(o.keys[i].get(m))
		if !v.IsValid() {
			return true
		}
		m.slots[slot] = v
	}
	return o.next.run(m)
}
