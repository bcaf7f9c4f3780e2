package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
	"github.com/admission-gateway/gateway/internal/status"
)

// Carry completes an update by the schema's rules for changes, before defaults are set: immutable
// values that it leaves out get their old value (DEF-7), and of a union whose discriminator it
// changes, members that it leaves as they were are taken out (VAL-6). Of a patched object nothing
// is completed that the patch took out.
//
// old is the stored object with its defaults set. What the update changes though it may not is left for
// [Schema.Validate].
func (s *Schema) Carry(d *document.Document, old document.Node, patched bool) {
	s.root.carry(d, d.Root(), old, patched)
}

// CarryStatus is Carry for the status alone, on a write to the status subresource. Nothing else of
// such a write counts.
func (s *Schema) CarryStatus(d *document.Document, old document.Node, patched bool) {
	v, found := d.Root().Lookup(statusName)
	before, had := old.Lookup(statusName)
	if shape := s.root.child(v); found && had && shape != nil {
		shape.carry(d, v, before, patched)
	}
}

func (s *Shape) carry(d *document.Document, v, old document.Node, patched bool) {
	if !patched && hasImmutable(s) && !s.extra.immutable {
		keep(d, s, v, old)
	}
	if hasUnions(s) {
		clearStale(d, s, v, old)
	}
}

// descend visits the values in a value whose shapes have immutable parts, each with its old value,
// which is invalid if there was none.
func (s *Shape) descend(v, old document.Node, concerned func(*Shape) bool, visit func(s *Shape, v, old document.Node)) {
	var next document.Node
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = next {
			next = m.Next() // before m is edited
			if child := s.child(m); concerned(child) {
				before, _ := old.Get(m.Key())
				visit(child, m, before)
			}
		}
	case document.Array:
		if !concerned(s.list.items) {
			return
		}
		previous := s.list.kind.Ancestors(old)
		for n := v.First(); n.Valid(); n = next {
			next = n.Next()
			visit(s.list.items, n, previous.Of(n))
		}
	}
}

// unset reports whether a member is no value of its shape, but means a missing one.
func (s *Shape) unset(m document.Node, found bool) bool {
	return !found || m.Kind() == document.Null && s.null != nullIsValue
}

// keep gives immutable values that are missing in an object, and in objects in it, their old values. Objects around
// them that are missing too are made; items and values of maps that are gone are not, as it is the list or the map that
// changed.
func keep(d *document.Document, s *Shape, v, old document.Node) {
	if v.Kind() == document.Object {
		for _, p := range s.extra.keeps {
			m, has := v.Lookup(p.key)
			before, had := old.Lookup(p.key)
			if !p.Shape.unset(m, has) || p.Shape.unset(before, had) {
				continue
			}
			if raw := kept(p.Shape, before); raw != nil {
				d.Set(v, p.Name, raw)
			}
		}
	}
	s.descend(v, old, hasImmutable, func(child *Shape, v, old document.Node) {
		if !child.extra.immutable && old.Valid() {
			keep(d, child, v, old)
		}
	})
}

// kept is the JSON of what is immutable of a value: all of it, or an object with what is immutable in it; nil is
// nothing.
func kept(s *Shape, v document.Node) []byte {
	switch {
	case s.extra.immutable:
		return v.Raw()
	case v.Kind() != document.Object:
		return nil
	}
	raw := []byte("{")
	for _, p := range s.extra.keeps {
		m, found := v.Lookup(p.key)
		if p.Shape.unset(m, found) {
			continue
		}
		if in := kept(p.Shape, m); in != nil {
			if len(raw) > 1 {
				raw = append(raw, ',')
			}
			raw = append(append(document.AppendString(raw, p.Name), ':'), in...)
		}
	}
	if len(raw) == 1 {
		return nil
	}
	return append(raw, '}')
}

// changedValues finds immutable values that an update changes or takes out. One that was not set may be set.
func (w *validator) changedValues(s *Shape, v, old document.Node) {
	if v.Kind() == document.Object {
		for _, p := range s.extra.keeps {
			m, has := v.Lookup(p.key)
			if before, had := old.Lookup(p.key); p.Shape.unset(m, has) && !p.Shape.unset(before, had) {
				w.lost(p.Shape, v, before, w.path(v).Child(p.Name))
			}
		}
	}
	s.descend(v, old, hasImmutable, func(child *Shape, v, old document.Node) {
		switch {
		case child.unset(old, old.Valid()) || child.unset(v, true):
		case !child.extra.immutable:
			w.changedValues(child, v, old)
		case !sameValue(child, v, old) && !w.fails():
			w.add(v, status.Immutable(w.path(v).String(), wording.Shown(v)))
		}
	})
}

// lost finds what is immutable in a value that an update takes out of the object v.
func (w *validator) lost(s *Shape, v, before document.Node, path *field.Path) {
	if s.extra.immutable {
		if !w.fails() {
			w.add(v, status.Immutable(path.String(), nil))
		}
		return
	}
	for _, p := range s.extra.keeps {
		if m, found := before.Lookup(p.key); !p.Shape.unset(m, found) {
			w.lost(p.Shape, v, m, path.Child(p.Name))
		}
	}
}

// sameValue reports whether two values are the same: numbers count by their value, and the items of sets and of lists
// of type map in any order, as in CEL rules.
func sameValue(s *Shape, a, b document.Node) bool {
	if s == nil || a.Kind() != b.Kind() {
		return compare.Same(a, b, true)
	}
	switch a.Kind() {
	case document.Object:
		if a.Len() != b.Len() {
			return false
		}
		for x := a.First(); x.Valid(); x = x.Next() {
			y, found := b.Get(x.Key())
			if !found || !sameValue(s.child(x), x, y) {
				return false
			}
		}
		return true
	case document.Array:
		if a.Len() != b.Len() {
			return false
		}
		items := func(x, y document.Node) bool { return sameValue(s.list.items, x, y) }
		if s.list.kind != nil && s.list.kind.SameItems(a, b, items) {
			return true
		}
		y := b.First()
		for x := a.First(); x.Valid(); x, y = x.Next(), y.Next() {
			if !sameValue(s.list.items, x, y) {
				return false
			}
		}
		return true
	}
	return compare.Same(a, b, true)
}
