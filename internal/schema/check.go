package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// check adds what the check of a document's schema finds in a value of the object. An update that replaces the object
// has to be valid as a whole: what a patch is not to blame for [Schema.ValidatePatched] drops.
func (w *validator) check(s *Schema, obj, v document.Node) { w.found(s.check.Check(obj, s.use), v) }

// found adds the failures within a value.
func (w *validator) found(result graph.Result, v document.Node) {
	for _, f := range result.Failures {
		if isWithin(f.At, v) && !w.fails() {
			w.add(f.At, f.Err)
		}
	}
	w.failures.more += result.More
}

// isWithin reports whether a value is another one or in it.
func isWithin(n, outer document.Node) bool {
	for ; n.Valid(); n = n.Parent() {
		if n == outer {
			return true
		}
	}
	return false
}

// listTypes checks what the list types within a value promise.
func (w *validator) listTypes(s *Shape, v document.Node) {
	if s == nil || !s.hasListTypes {
		return
	}
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			w.listTypes(s.child(m), m)
		}
	case document.Array:
		if s.list.kind != nil {
			w.distinct(s.list.kind, v)
		}
		for n := v.First(); n.Valid(); n = n.Next() {
			w.listTypes(s.list.items, n)
		}
	}
}
