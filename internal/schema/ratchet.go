package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
)

// ratchet drops what is wrong with a value that an update leaves as it was, as Kubernetes does since 1.33.
func (w *validator) ratchet(s *Shape, v, old document.Node, begin mark, changes int) {
	if w.changes > changes {
		return // something in it has changed, so that it has
	}
	if !unchanged(s, v, old) {
		w.changes++
		return
	}
	w.failures.drop(begin, func(f failure) bool { return f.class != ofSchema })
}

// unchanged reports whether a value equals its predecessor. It follows Kubernetes' CorrelatedObject: the items of lists
// of type map may change places, and an object that has members without a schema counts as changed.
func unchanged(s *Shape, v, old document.Node) bool {
	kind := v.Kind()
	if kind != old.Kind() {
		return false
	}
	switch kind {
	case document.Object:
		if v.Len() != old.Len() {
			return false
		}
		for m := v.First(); m.Valid(); m = m.Next() {
			before, found := old.Get(m.Key())
			if !found {
				return false
			}
			child := s.child(m)
			if child == nil || !unchanged(child, m, before) {
				return false
			}
		}
		return true
	case document.Array:
		if v.Len() != old.Len() {
			return false
		}
		if s.list.kind == nil || s.list.kind.Keys == nil || s.list.items == nil {
			return compare.Equal(v, old)
		}
		previous := s.list.kind.Predecessors(old)
		for n := v.First(); n.Valid(); n = n.Next() {
			before := previous.Of(n)
			if !before.Valid() || !unchanged(s.list.items, n, before) {
				return false
			}
		}
		return true
	}
	return compare.Equal(v, old)
}

// child is the shape of a member, or nil.
func (s *Shape) child(m document.Node) *Shape {
	if p := s.property(m); p != nil {
		return p.Shape
	}
	return s.object.additional
}
