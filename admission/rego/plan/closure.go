package plan

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A not goes on if a body has no solution.
type not struct {
	seq
	body *block
	id   int
}

func (n *not) run(m *machine) bool {
	m.found[n.id] = false
	if !n.body.start.run(m) && m.err != nil {
		return false
	}
	return m.found[n.id] || n.next.run(m)
}

// A solved ends a body that must have a solution, whatever it is.
type solved struct {
	id  int
	one bool // the first one is enough
}

func (s *solved) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	m.found[s.id] = true
	return !s.one
}

// An every goes on if a body has a solution for each member of a value.
type every struct {
	seq
	of         source
	key, value int
	body       *block
	id         int
}

func (e *every) run(m *machine) bool {
	t := e.of.get(m)
	if t == nil {
		return true
	}
	all := true
	check := func(key, value *ast.Term) bool {
		m.slots[e.key], m.slots[e.value] = key, value
		m.found[e.id] = false
		if m.goesOn() {
			e.body.start.run(m)
		}
		all = m.found[e.id]
		return m.err == nil && all
	}
	switch v := t.Value.(type) {
	case *ast.Array:
		for i := 0; i < v.Len() && check(ast.InternedTerm(i), v.Elem(i)); i++ {
		}
	case ast.Object:
		v.Until(func(key, value *ast.Term) bool { return !check(key, value) })
	case ast.Set:
		v.Until(func(item *ast.Term) bool { return !check(item, item) })
	default:
		return true
	}
	if m.err != nil {
		return false
	}
	return !all || e.next.run(m)
}

// A list holds what a comprehension found.
type list struct {
	items  []*ast.Term
	set    ast.Set
	object ast.Object
}

// A comprehension makes a value of all solutions of a body.
type comprehension struct {
	seq
	body *block
	id   int
	make func(*list) *ast.Term
	into int
}

func (c *comprehension) run(m *machine) bool {
	l := &m.lists[c.id]
	l.items, l.set, l.object = l.items[:0], nil, nil
	if !c.body.start.run(m) {
		return false
	}
	m.slots[c.into] = c.make(l)
	return c.next.run(m)
}

func arrayFrom(l *list) *ast.Term {
	if len(l.items) == 0 {
		return ast.InternedEmptyArray
	}
	return ast.ArrayTerm(slices.Clone(l.items)...)
}

func setFrom(l *list) *ast.Term {
	if l.set == nil {
		return ast.InternedEmptySet
	}
	return ast.NewTerm(l.set)
}

func objectFrom(l *list) *ast.Term {
	if l.object == nil {
		return ast.InternedEmptyObject
	}
	return ast.NewTerm(l.object)
}

// The ends of the bodies of comprehensions.
type (
	addItem struct {
		id   int
		item source
	}
	addElement struct {
		id   int
		item source
	}
	addMember struct {
		id         int
		key, value source
		at         *ast.Location
	}
)

func (a *addItem) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	l := &m.lists[a.id]
	l.items = append(l.items, a.item.get(m))
	return true
}

func (a *addElement) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	l := &m.lists[a.id]
	if l.set == nil {
		l.set = ast.NewSet(a.item.get(m))
	} else {
		l.set.Add(a.item.get(m))
	}
	return true
}

func (a *addMember) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	l := &m.lists[a.id]
	if l.object == nil {
		l.object = ast.NewObject()
	}
	return m.insert(l.object, a.key.get(m), a.value.get(m), a.at)
}

// insert adds a member to an object, which must not have another value yet.
func (m *machine) insert(o ast.Object, key, value *ast.Term, at *ast.Location) bool {
	if was := o.Get(key); was == nil {
		o.Insert(key, value)
	} else if !was.Equal(value) {
		m.err = &topdown.Error{
			Code: topdown.ConflictErr, Location: at, Message: "object keys must be unique",
		}
		return false
	}
	return true
}
