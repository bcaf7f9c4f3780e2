package admission

import (
	"iter"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Selection finds the policies that may concern a request, as a Chain does, among policies that
// no [Chain] runs. It is immutable and safe for concurrent use. A nil Selection has none.
type Selection[P Policy] struct {
	policies []P
	index    index
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

// For goes through the policies that may concern the operation on the resource,
// in the order of their names.
func (s *Selection[P]) For(i *resource.Info, o Operation) iter.Seq[P] {
	return func(yield func(P) bool) {
		if s == nil {
			return
		}
		found := s.index.search(i, o)
		for p := found.next(); p >= 0; p = found.next() {
			if !yield(s.policies[p]) {
				return
			}
		}
	}
}
