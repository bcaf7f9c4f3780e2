package plan

import "github.com/open-policy-agent/opa/v1/ast"

// A source is the location of a value that is known when a step runs: a constant, a slot, or made
// of other sources.
type source struct {
	term *ast.Term
	made maker
	slot int
}

// A maker makes a value of others.
type maker interface{ make(m *machine) *ast.Term }

func inSlot(slot int) source { return source{slot: slot} }

func (s *source) get(m *machine) Value {
	switch {
	case s.term != nil:
		return Made(s.term)
	case s.made != nil:
		return Made(s.made.make(m))
	}
	return m.slots[s.slot]
}

// whole is get for what takes OPA's values.
func (s *source) whole(m *machine) *ast.Term {
	if s.term != nil {
		return s.term
	}
	v := s.get(m)
	return v.Whole()
}

type newArray struct{ items []source }

func (a *newArray) make(m *machine) *ast.Term {
	items := make([]*ast.Term, len(a.items))
	for i := range a.items {
		items[i] = a.items[i].whole(m)
	}
	return ast.ArrayTerm(items...)
}

type newSet struct{ items []source }

func (s *newSet) make(m *machine) *ast.Term {
	set := ast.NewSetWithCapacity(len(s.items))
	for i := range s.items {
		set.Add(s.items[i].whole(m))
	}
	return ast.NewTerm(set)
}

type newObject struct{ keys, values []source }

func (o *newObject) make(m *machine) *ast.Term {
	pairs := make([][2]*ast.Term, len(o.keys))
	for i := range o.keys {
		pairs[i] = [2]*ast.Term{o.keys[i].whole(m), o.values[i].whole(m)}
	}
	return ast.NewTerm(ast.NewObject(pairs...))
}
