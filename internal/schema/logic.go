package schema

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// logic checks allOf, anyOf, oneOf and not. Which branch failed how is looked at only once it is known that the value
// fails. What is below these keywords has no old value: Kubernetes does not ratchet there.
func (w *validator) logic(l *logicRules, v document.Node) (matched int) {
	trusting := w.trusting
	w.trusting = false // values are marked by other shapes than the branches
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
	if l.not != nil && !w.done() && w.matches(l.not, v) && !w.fails() {
		w.add(v, wording.Not(w.path(v)))
	}
	w.trusting = trusting
	return matched
}

// matches reports whether a shape takes the value.
func (w *validator) matches(s *Shape, v document.Node) bool {
	outer := w.failed
	w.failed = false
	w.probing++
	w.value(s, v, document.Node{})
	w.probing--
	matches := !w.failed
	w.failed = outer
	return matches
}

func (w *validator) anyOf(branches []*Shape, v document.Node) int {
	for _, branch := range branches {
		if w.matches(branch, v) {
			return w.weigh(branch, v)
		}
	}
	if w.fails() {
		return 0
	}
	w.add(v, wording.AnyOf(w.path(v), demands(branches)))
	return w.explain(branches, v)
}

func (w *validator) oneOf(branches []*Shape, v document.Node) int {
	fitting := 0
	var first *Shape
	for _, branch := range branches {
		if w.matches(branch, v) {
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
	w.add(v, wording.OneOf(w.path(v), fitting, demands(branches)))
	if fitting > 1 {
		return 0
	}
	return w.explain(branches, v)
}

// weigh counts what matches in a branch that does, if asked for.
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

// demands are the members that alternatives ask for, if each asks for one and nothing else; else nil.
func demands(branches []*Shape) []string {
	names := make([]string, 0, len(branches))
	for _, s := range branches {
		if len(s.object.required) != 1 || len(s.object.properties) > 0 || s.logic != nil || s.enum != nil ||
			s.object.size != nil || s.list.size != nil ||
			s.object.additional != nil || s.object.others == othersRefused || s.typeName != "" &&
			s.typeName != "object" {
			return nil
		}
		names = append(names, s.object.required[0].String())
	}
	return names
}
