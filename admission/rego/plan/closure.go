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
	of := e.of.get(m)
	if !of.IsValid() {
		return true
	}
	if !of.isContainer() {
		return true
	}
	m.found[e.id] = true
	if of.each(m, e); m.err != nil {
		return false
	}
	return !m.found[e.id] || e.next.run(m)
}

// visit implements visitor.
func (e *every) visit(m *machine, key, value Value) bool {
	m.slots[e.key], m.slots[e.value] = key, value
	m.found[e.id] = false
	if m.goesOn() {
		e.body.start.run(m)
	}
	return m.err == nil && m.found[e.id]
}

// A list holds what a comprehension found.
type list struct {
	items  []*ast.Term
	set    elements
	object ast.Object
}

// A comprehension makes a value of all solutions of a body.
type comprehension struct {
	seq
	body *block
	id   int
	make func(*list) Value
	into int
}

func (c *comprehension) run(m *machine) bool {
	l := &m.lists[c.id]
	l.items, l.set, l.object = l.items[:0], elements{}, nil
	if !c.body.start.run(m) {
		return false
	}
	m.slots[c.into] = c.make(l)
	return c.next.run(m)
}

func arrayFrom(l *list) Value {
	if len(l.items) == 0 {
		return Made(ast.InternedEmptyArray)
	}
	return Made(ast.ArrayTerm(slices.Clone(l.items)...))
}

func setFrom(l *list) Value { return l.set.value() }

func objectFrom(l *list) Value {
	if l.object == nil {
		return Made(ast.InternedEmptyObject)
	}
	return Made(ast.NewTerm(l.object))
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
	l.items = append(l.items, a.item.whole(m))
	return true
}

func (a *addElement) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	m.lists[a.id].set.add(a.item.get(m))
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
	return m.insert(l.object, a.key.whole(m), a.value.whole(m), a.at)
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
