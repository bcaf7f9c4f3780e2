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
	if b, ok := t.of.get(m).Value.(ast.Boolean); ok && !bool(b) {
		return true
	}
	return t.next.run(m)
}

// An equal goes on if two values are equal.
type equal struct {
	seq
	a, b source
}

func (e *equal) run(m *machine) bool { return !e.a.get(m).Equal(e.b.get(m)) || e.next.run(m) }

// A mayEqual goes on if a value has the type of a comprehension's. OPA does not evaluate it otherwise,
// unless the value is a set.
type mayEqual struct {
	seq
	of            source
	comprehension ast.Value
}

func (e *mayEqual) run(m *machine) bool {
	return !canEqual(e.of.get(m).Value, e.comprehension) || e.next.run(m)
}

func canEqual(v, comprehension ast.Value) bool {
	ok := false
	switch v.(type) {
	case *ast.Array:
		_, ok = comprehension.(*ast.ArrayComprehension)
	case ast.Object:
		_, ok = comprehension.(*ast.ObjectComprehension)
	case ast.Set:
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
	v, ok := a.from.get(m).Value.(*ast.Array)
	if !ok || v.Len() != len(a.into) {
		return true
	}
	for i, slot := range a.into {
		m.slots[slot] = v.Elem(i)
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
	v, ok := o.from.get(m).Value.(ast.Object)
	if !ok || v.Len() != len(o.into) {
		return true
	}
	for i, slot := range o.into {
		t := v.Get(o.keys[i].get(m))
		if t == nil {
			return true
		}
		m.slots[slot] = t
	}
	return o.next.run(m)
}
