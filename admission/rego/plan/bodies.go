package plan

import "github.com/open-policy-agent/opa/v1/ast"

// within makes the steps of a body within this one, later.
func (s *scope) within(into *block, body ast.Body, end func(*scope) step) {
	in := s.inner()
	s.later = append(s.later, func() {
		in.body(body)
		last := end(in)
		into.start = in.end(last)
	})
}

// body makes the steps of expressions.
func (s *scope) body(body ast.Body) {
	for _, e := range body {
		s.add(&tick{})
		s.expr(e)
	}
}

func (s *scope) expr(e *ast.Expr) {
	if len(e.With) > 0 {
		s.with(e)
		return
	}
	switch terms := e.Terms.(type) {
	case []*ast.Term:
		switch {
		case e.Negated:
			s.negated(e)
		case e.IsEquality():
			s.unify(terms[1], terms[2])
		default:
			s.call(terms, e.Location)
		}
	case *ast.Term:
		if e.Negated {
			s.negated(e)
		} else {
			s.add(&truthy{of: s.evaluate(terms, nil)})
		}
	case *ast.Not:
		if e.Negated {
			s.refuse("there is no step for a negated %T", terms)
		}
		s.not(terms.Body)
	case *ast.Every:
		if e.Negated {
			s.refuse("there is no step for a negated %T", terms)
		}
		s.every(terms)
	default:
		s.refuse("there is no step for %T", terms)
	}
}

func (s *scope) negated(e *ast.Expr) {
	plain := *e
	plain.Negated = false
	s.not(ast.Body{&plain})
}

func (s *scope) not(body ast.Body) {
	n := &not{body: &block{}, id: next(&s.bodies)}
	s.add(n)
	s.within(n.body, body, func(*scope) step { return &solved{id: n.id} })
}

func (s *scope) every(e *ast.Every) {
	all := &every{
		of: s.evaluate(e.Domain, nil), key: s.slot(), value: s.slot(),
		body: &block{}, id: next(&s.bodies),
	}
	s.add(all)
	in := s.inner()
	for t, slot := range map[*ast.Term]int{e.Key: all.key, e.Value: all.value} {
		if t == nil {
			continue
		}
		v, ok := t.Value.(ast.Var)
		if _, known := s.known[v]; !ok || known {
			s.refuse("the variable %s of every has a value", t)
		}
		in.known[v] = inSlot(slot)
	}
	in.within(all.body, e.Body, func(*scope) step { return &solved{id: all.id, one: true} })
}
