package admission

import (
	"context"
	"iter"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Selection finds the policies that may concern a request, as a Chain does, among policies that
// no [Chain] runs. It is immutable and safe for concurrent use. A nil Selection has none.
type Selection[P Policy] struct {
	policies []P
	index    policyIndex
}

// NewSelection makes a selection of policies, in any order; nil for none. It has them in the order of their names.
func NewSelection[P Policy](policies []P) *Selection[P] { return InOrder(byName(policies)) }

// InOrder makes a selection of policies that it has in their order; nil for none. They must not be changed.
func InOrder[P Policy](policies []P) *Selection[P] {
	if len(policies) == 0 {
		return nil
	}
	s := &Selection[P]{policies: policies}
	s.index = newIndex(s.policies)
	return s
}

// For goes through the policies that may match the operation on the resource, in their order.
func (s *Selection[P]) For(i *resource.Info, o Operation) iter.Seq[P] {
	return func(yield func(P) bool) {
		if s == nil {
			return
		}
		var to room
		s.each(s.index.find(&to, i, o), i, yield)
	}
}

// each goes through the found policies that may be for the namespace of a request.
func (s *Selection[P]) each(f found, i *resource.Info, yield func(P) bool) {
	positions := search(f, i)
	for p := positions.Next(); p >= 0; p = positions.Next() {
		if !yield(s.policies[p]) {
			return
		}
	}
}

// Excludes reports whether all of the policies are certainly not about an operation, before anything is read: they are
// one policy to a [Chain], which is a [Narrower] by it.
func (s *Selection[P]) Excludes(i *resource.Info, o Operation) bool {
	if s == nil {
		return true
	}
	var to room
	for _, l := range s.index.find(&to, i, o) {
		if !each(l, i, func(p int32) bool { n := s.index.narrowers[p]; return n != nil && n.Excludes(i, o) }) {
			return false
		}
	}
	return true
}

// CanPrefilter reports whether any of the policies is a [Prefilter] that may find out that it is not about a request.
func (s *Selection[P]) CanPrefilter() bool { return s != nil && s.index.canPrefilter }

// IsFilteredOut reports whether all of the policies are certainly not about the request, as a [Prefilter] does.
func (s *Selection[P]) IsFilteredOut(ctx context.Context, a *Attributes) bool {
	for p := range s.For(a.Info, a.Operation) {
		if n, is := Policy(p).(Narrower); is && n.Excludes(a.Info, a.Operation) {
			continue
		}
		if f, is := Policy(p).(Prefilter); !is || !f.IsFilteredOut(ctx, a) {
			return false
		}
	}
	return true
}

// ReadsOld reports whether any of the policies that may match reads the stored object for the operation.
func (s *Selection[P]) ReadsOld(i *resource.Info, o Operation) bool {
	if s == nil {
		return false
	}
	var to room
	return s.index.needsOld(s.index.find(&to, i, o), i, o)
}

// References returns what all of the policies refer to.
func (s *Selection[P]) References() (r References) {
	if s == nil {
		return r
	}
	for _, p := range s.policies {
		r.Add(ReferencesOf(p))
	}
	return r
}

// Reasons returns why none of the policies matches a request; nothing if one is. A reason has the
// name of its policy in the place of a binding's. There are at most a few.
func (s *Selection[P]) Reasons(ctx context.Context, a *Attributes) (all []Reason) {
	const most = 20
	for p := range s.For(a.Info, a.Operation) {
		found := ReasonsOf(ctx, p, a)
		if len(found) == 0 {
			return nil
		}
		for _, r := range found {
			if r.Binding = p.Name(); len(all) < most {
				all = append(all, r)
			}
		}
	}
	if s == nil || len(all) > 0 {
		return all
	}
	var rules []Rule
	for _, p := range s.policies {
		rules = append(rules, p.Rules()...)
	}
	return []Reason{{Because: ApplicabilityOf("", rules, a).Because}}
}

// A Selected is the policies of a [Selection] that may match operations on one resource or subresource, as [Scoped] is
// for a [Chain]. A nil Selected has none.
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

// For goes through the policies that may match one operation, in their order.
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
