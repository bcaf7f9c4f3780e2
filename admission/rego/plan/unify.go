package plan

import "github.com/open-policy-agent/opa/v1/ast"

// evaluate returns the source of a term's value, after the steps that evaluate it. If the value
// that it must have is known, wanted is its source.
func (s *scope) evaluate(t *ast.Term, wanted wish) source {
	switch v := t.Value.(type) {
	case ast.Ref:
		return s.ref(v, wanted)
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return s.comprehension(t)
	}
	from, ok := s.source(t)
	if !ok {
		s.refuse("%s has no value", t)
	}
	return from
}

// unify makes the steps of a = b.
func (s *scope) unify(a, b *ast.Term) {
	switch {
	case isRef(a) && mustEvaluate(b):
		s.unifyEvaluated(a, b)
	case isRef(a):
		s.match(b, s.evaluate(a, s.wish(b)))
	case isRef(b) && mustEvaluate(a):
		s.unifyEvaluated(b, a)
	case isRef(b):
		s.match(a, s.evaluate(b, s.wish(a)))
	case ast.IsComprehension(a.Value) && mustEvaluate(b):
		s.unifyEvaluated(a, b)
	case ast.IsComprehension(a.Value):
		s.match(b, s.evaluate(a, nil))
	case ast.IsComprehension(b.Value):
		if from, ok := s.source(a); ok {
			s.add(&mayEqual{of: from, comprehension: b.Value})
		} else if _, isVar := a.Value.(ast.Var); !isVar && !canEqual(a.Value, b.Value) {
			s.add(&never{})
		}
		s.match(a, s.evaluate(b, nil))
	default:
		s.unifyTerms(a, b)
	}
}

// unifyEvaluated is unify for two terms that must be evaluated.
func (s *scope) unifyEvaluated(a, b *ast.Term) {
	one := s.evaluate(a, nil)
	if ast.IsComprehension(b.Value) {
		s.add(&mayEqual{of: one, comprehension: b.Value})
	}
	other := s.evaluate(b, func() (source, bool) { return one, true })
	s.add(&equal{a: one, b: other})
}

// A wish returns the source of a value that another one must be equal to; false if it is not known
// yet.
type wish func() (source, bool)

func (s *scope) wish(t *ast.Term) wish { return func() (source, bool) { return s.source(t) } }

func mustEvaluate(t *ast.Term) bool { return isRef(t) || ast.IsComprehension(t.Value) }

func isRef(t *ast.Term) bool {
	_, ok := t.Value.(ast.Ref)
	return ok
}

// unifyTerms is unify for terms that need no evaluation.
func (s *scope) unifyTerms(a, b *ast.Term) {
	if from, ok := s.source(a); ok {
		s.match(b, from)
		return
	}
	if from, ok := s.source(b); ok {
		s.match(a, from)
		return
	}
	x, ok := a.Value.(*ast.Array)
	y, alike := b.Value.(*ast.Array)
	switch {
	case !ok || !alike:
		s.refuse("neither side of %s = %s is known", a, b)
	case x.Len() != y.Len():
		s.add(&never{})
	default:
		for i := range x.Len() {
			s.unify(x.Elem(i), y.Elem(i))
		}
	}
}

// match makes the steps that hold a value against a term, whose free variables become parts of it.
func (s *scope) match(t *ast.Term, value source) {
	if from, ok := s.source(t); ok {
		s.add(&equal{a: from, b: value})
		return
	}
	value = s.once(value)
	switch v := t.Value.(type) {
	case ast.Var:
		s.known[v] = value
	case *ast.Array:
		into := make([]int, v.Len())
		for i := range into {
			into[i] = s.slot()
		}
		s.add(&arrayOf{from: value, into: into})
		for i, slot := range into {
			s.match(v.Elem(i), inSlot(slot))
		}
	case ast.Object:
		s.matchObject(v, value)
	default:
		s.refuse("there is no step that matches %s", t)
	}
}

func (s *scope) matchObject(o ast.Object, value source) {
	parts := &objectOf{from: value}
	var values []*ast.Term
	o.Foreach(func(key, t *ast.Term) {
		from, ok := s.source(key)
		if !ok {
			s.refuse("the key %s has no value", key)
		}
		parts.keys, parts.into = append(parts.keys, from), append(parts.into, s.slot())
		values = append(values, t)
	})
	s.add(parts)
	for i, t := range values {
		s.match(t, inSlot(parts.into[i]))
	}
}

// once is a source that makes nothing when it is asked again.
func (s *scope) once(from source) source {
	if _, isInput := from.made.(allInput); isInput || from.made == nil {
		return from
	}
	s.refuseOrder(from)
	slot := s.slot()
	s.add(&assign{from: from, into: slot})
	return inSlot(slot)
}

// refuseOrder refuses a value whose members OPA goes through in the order of its text, with variables
// last, until it is evaluated.
func (s *scope) refuseOrder(from source) {
	var parts []source
	switch made := from.made.(type) {
	case *newArray:
		parts = made.items
	case *newSet:
		if len(made.items) > 1 {
			s.refuse("a variable has a set that is written with variables")
		}
		parts = made.items
	case *newObject:
		for i := range made.keys {
			if len(made.keys) > 1 && made.keys[i].term == nil {
				s.refuse("a variable has an object whose keys are written with variables")
			}
		}
		parts = made.values
	}
	for _, part := range parts {
		s.refuseOrder(part)
	}
}

// comprehension makes the steps of one.
func (s *scope) comprehension(t *ast.Term) source {
	if s.compiler.ComprehensionIndex(t) != nil {
		s.refuse("OPA evaluates the comprehension %s once for all values of a variable", t)
	}
	c := &comprehension{body: &block{}, id: next(&s.lists), into: s.slot()}
	switch v := t.Value.(type) {
	case *ast.ArrayComprehension:
		c.make = arrayFrom
		s.within(c.body, v.Body, func(in *scope) step {
			return &addItem{c.id, in.evaluate(v.Term, nil)}
		})
	case *ast.SetComprehension:
		c.make = setFrom
		s.within(c.body, v.Body, func(in *scope) step {
			return &addElement{c.id, in.evaluate(v.Term, nil)}
		})
	case *ast.ObjectComprehension:
		c.make = objectFrom
		s.within(c.body, v.Body, func(in *scope) step {
			key, value := in.evaluate(v.Key, nil), in.evaluate(v.Value, nil)
			return &addMember{c.id, key, value, v.Key.Location}
		})
	}
	s.add(c)
	return inSlot(c.into)
}
