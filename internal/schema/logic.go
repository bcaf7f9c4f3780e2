package schema

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// logic checks allOf, anyOf, oneOf and not. Which branch failed how is looked at only once it is known that the value
// fails. What is below these keywords has no old value: Kubernetes does not ratchet there.
func (w *validator) logic(l *logicRules, v document.Node) (matched int) {
	trusting := w.trusting
	w.trusting = false // values are marked by other shapes than those of the branches
	if len(l.anyOf) > 0 && !w.done() {
		matched += w.anyOf(l.anyOf, v)
	}
	if len(l.oneOf) > 0 && !w.done() {
		matched += w.oneOf(l.oneOf, v)
	}
	for _, branch := range l.allOf {
		if !w.done() {
			matched += w.value(branch, v, document.Node{})
		}
	}
	if l.not != nil && !w.done() && w.holds(l.not, v) && !w.fails() {
		w.add(v, notFailure(w.path(v)))
	}
	for _, c := range l.choices {
		if !w.done() {
			matched += w.choose(c, v)
		}
	}
	w.trusting = trusting
	return matched
}

// choose holds an object against the shape that one of its members names.
func (w *validator) choose(c *choice, v document.Node) (matched int) {
	if v.Kind() != document.Object {
		return 0
	}
	m, found := v.Lookup(c.property)
	switch {
	case !found:
		w.missing(v, c.property.String(), ofSchema)
		return 0
	case m.Kind() == document.String:
		if i := slices.Index(c.values, m.Str()); i >= 0 {
			return w.value(c.shapes[i], v, document.Node{})
		}
	}
	if !w.fails() {
		w.add(m, enumFailure(w.path(m), m, c.values))
	}
	return 0
}

// holds tells whether the value fits a shape.
func (w *validator) holds(s *Shape, v document.Node) bool {
	outer := w.failed
	w.failed = false
	w.probing++
	w.value(s, v, document.Node{})
	w.probing--
	holds := !w.failed
	w.failed = outer
	return holds
}

func (w *validator) anyOf(branches []*Shape, v document.Node) int {
	for _, branch := range branches {
		if w.holds(branch, v) {
			return w.weigh(branch, v)
		}
	}
	if w.fails() {
		return 0
	}
	w.add(v, anyOfFailure(w.path(v), branches))
	return w.explain(branches, v)
}

func (w *validator) oneOf(branches []*Shape, v document.Node) int {
	fitting := 0
	var first *Shape
	for _, branch := range branches {
		if w.holds(branch, v) {
			if fitting++; first == nil {
				first = branch
			}
		}
	}
	if fitting == 1 {
		return w.weigh(first, v)
	}
	if w.fails() {
		return 0
	}
	w.add(v, oneOfFailure(w.path(v), fitting, branches))
	if fitting > 1 {
		return 0
	}
	return w.explain(branches, v)
}

// weigh counts what matches in a branch that holds, where somebody asks.
func (w *validator) weigh(branch *Shape, v document.Node) int {
	if w.weighing == 0 || w.probing > 0 {
		return 0
	}
	return w.value(branch, v, document.Node{})
}

// explain adds the failures of the branch that comes closest: of several, the first.
func (w *validator) explain(branches []*Shape, v document.Node) int {
	w.weighing++
	begin, most := w.failures.mark(), -1
	var closest []failure
	for _, branch := range branches {
		if n := w.value(branch, v, document.Node{}); n > most {
			most, closest = n, slices.Clone(w.failures.list[begin.length:])
		}
		w.failures.rewind(begin)
	}
	w.weighing--
	w.failures.list = append(w.failures.list, closest...)
	return most
}
