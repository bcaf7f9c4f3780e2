package graph

import "slices"

func (l *logicRules) isEmpty() bool {
	return len(l.all) == 0 && len(l.groups) == 0 && len(l.not) == 0 && len(l.choices) == 0 && len(l.dynamic) == 0 &&
		l.condition == nil
}

// marks are what a schema and the schemas that hold with it say of readOnly and writeOnly.
func (s *node) marks(depth int) (isReadOnly, isWriteOnly bool) {
	isReadOnly, isWriteOnly = s.isReadOnly, s.isWriteOnly
	if s.logic == nil || depth == 0 {
		return isReadOnly, isWriteOnly
	}
	for _, other := range s.logic.all {
		r, w := other.marks(depth - 1)
		isReadOnly, isWriteOnly = isReadOnly || r, isWriteOnly || w
	}
	return isReadOnly, isWriteOnly
}

// endless says of a schema that refers to itself for the same value what that means.
func (c *Compiler) endless(q queued) {
	l := q.schema.logic
	switch {
	case reaches(l.all, q.schema, onlyAll):
		c.warn(q.node, "must not refer to itself by way of '$ref' and 'allOf' alone; this is not enforced")
	case slices.ContainsFunc(append(slices.Clone(l.not), l.condition),
		func(s *node) bool { return s != nil && reaches([]*node{s}, q.schema, inPlace) }):
		c.refuse(q.node, "must not refer to itself by way of 'not' or 'if'")
	case reaches(l.all, q.schema, beside),
		slices.ContainsFunc(l.groups, func(g group) bool { return reaches(g.branches, q.schema, beside) }):
		c.gap(q.node, "refers to itself for the same value by way of its alternatives: there it is taken to hold")
	}
}

// reaches reports whether a schema can be reached from others.
func reaches(from []*node, to *node, next func(*node, func(*node))) bool {
	seen := map[*node]bool{}
	var visit func(*node) bool
	visit = func(s *node) bool {
		if s == to {
			return true
		}
		if seen[s] {
			return false
		}
		seen[s] = true
		found := false
		next(s, func(n *node) { found = found || visit(n) })
		return found
	}
	return slices.ContainsFunc(from, visit)
}

// onlyAll visits the schemas that hold with one.
func onlyAll(s *node, visit func(*node)) {
	if s.logic != nil {
		for _, n := range s.logic.all {
			visit(n)
		}
	}
}

// beside visits the schemas that one applies to the same value without a discriminator.
func beside(s *node, visit func(*node)) {
	onlyAll(s, visit)
	if s.logic == nil {
		return
	}
	for _, g := range s.logic.groups {
		for _, b := range g.branches {
			visit(b)
		}
	}
}

// inPlace visits the schemas that one applies to the same value.
func inPlace(s *node, visit func(*node)) {
	if o := s.object; o != nil {
		for _, d := range o.dependents {
			if d.schema != nil {
				visit(d.schema)
			}
		}
	}
	l := s.logic
	if l == nil {
		return
	}
	onlyAll(s, visit)
	for _, g := range l.groups {
		for _, b := range g.branches {
			visit(b)
		}
	}
	for _, n := range l.not {
		visit(n)
	}
	for _, c := range l.choices {
		c.each(visit)
	}
	for _, d := range l.dynamic {
		d.each(visit)
	}
	for _, n := range []*node{l.condition, l.then, l.otherwise} {
		if n != nil {
			visit(n)
		}
	}
}

// findLoops finds schemas at which the way back to itself for the same value begins: every such way
// has one of them.
func findLoops(made []queued) map[*node]bool {
	const entered, left = 1, 2
	state := map[*node]int{}
	loops := map[*node]bool{}
	var visit func(*node)
	visit = func(s *node) {
		state[s] = entered
		inPlace(s, func(n *node) {
			switch {
			case n.isComplete: // with all that it leads to
			case state[n] == 0:
				visit(n)
			case state[n] == entered:
				loops[n] = true
			}
		})
		state[s] = left
	}
	for _, q := range made {
		if state[q.schema] == 0 && (q.schema.logic != nil || q.schema.object != nil) {
			visit(q.schema)
		}
	}
	return loops
}
