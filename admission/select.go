package admission

import (
	"iter"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Selection finds the policies that may concern a request, as a Chain does, among policies that
// no [Chain] runs. It is immutable and safe for concurrent use. A nil Selection has none.
type Selection[P Policy] struct {
	policies []P
	index    policyIndex
}

// NewSelection makes a selection of policies, in any order; nil for none.
func NewSelection[P Policy](policies []P) *Selection[P] {
	if len(policies) == 0 {
		return nil
	}
	s := &Selection[P]{policies: byName(policies)}
	s.index = newIndex(s.policies)
	return s
}

// For goes through the policies that may match the operation on the resource, in the order of their names.
func (s *Selection[P]) For(i *resource.Info, o Operation) iter.Seq[P] {
	return func(yield func(P) bool) {
		if s == nil {
			return
		}
		var to room
		s.each(s.index.find(&to, i, o), i, yield)
	}
}

// each goes through those of the policies found that may be for the namespace of a request.
func (s *Selection[P]) each(f found, i *resource.Info, yield func(P) bool) {
	positions := search(f, i)
	for p := positions.Next(); p >= 0; p = positions.Next() {
		if !yield(s.policies[p]) {
			return
		}
	}
}

// A Selected is the policies of a [Selection] that may match operations on one resource or subresource, as [Scoped] is for a
// [Chain]. A nil Selected has none.
type Selected[P Policy] struct {
	selection *Selection[P]
	found     [operations]found
}

// Scope returns the policies for the resource or subresource of a request; nil if there are none.
func (s *Selection[P]) Scope(i *resource.Info) *Selected[P] {
	if s == nil {
		return nil
	}
	selected, isEmpty := Selected[P]{selection: s}, true
	for bit := range operations {
		var to room
		selected.found[bit] = keep(s.index.find(&to, i, 1<<bit))
		isEmpty = isEmpty && selected.found[bit] == nil
	}
	if isEmpty {
		return nil
	}
	return &selected
}

// For goes through the policies that may match one operation, in the order of their names.
func (s *Selected[P]) For(i *resource.Info, o Operation) iter.Seq[P] {
	return func(yield func(P) bool) {
		if s == nil {
			return
		}
		for bit := range operations {
			if o == 1<<bit {
				s.selection.each(s.found[bit], i, yield)
			}
		}
	}
}
