package schema

import (
	"slices"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
)

// Most objects are right, and every one of their members is looked up and looked at by Prune anyhow. So Prune leaves
// notes for the walks after it: on a member the number of its property, and marks on each value that is right by its
// shape, or has no defaults left to be filled in, with all that is in it. Defaults finds properties by their numbers,
// and defaults and Validate pass over what is marked. An edit takes the marks of what is around it away. What is filled
// in and what is found wrong is the same without notes.

// prepare completes the shapes of the schema for Prune: the author of the notes on their values, the forms by which
// Prune goes through them, and which defaults can be added to values that are marked.
func (s *Schema) prepare() {
	s.notes = new(document.Noter)
	s.prepareShape(s.root, s.notes, true)
	s.prepareShape(s.meta, s.notes, false)
	if names, ok := s.root.appendNames(nil, map[*Shape]bool{}); s.check != nil && s.meta == nil && ok {
		slices.Sort(names)
		s.spelling = document.NewSpelling(slices.Compact(names))
	}
}

// appendNames appends the names of all properties in a shape. It is not ok if Prune can do more by the shape than find
// names that differ from them in case alone, apart from what the schema does not know.
func (s *Shape) appendNames(names []string, seen map[*Shape]bool) (_ []string, ok bool) {
	if s == nil || seen[s] {
		return names, true
	}
	seen[s] = true
	if s.null != nullIsValue || s.def != nil || s.hasDefaults || s.envelope != noEnvelope {
		return nil, false
	}
	for i := range s.object.properties {
		p := &s.object.properties[i]
		if names, ok = p.Shape.appendNames(append(names, p.Name), seen); !ok {
			return nil, false
		}
	}
	if names, ok = s.object.additional.appendNames(names, seen); !ok {
		return nil, false
	}
	return s.list.items.appendNames(names, seen)
}

// prepareShape completes a shape and the shapes in it. alone is set if no rule of a value around it reads the value,
// other than the keys of the items of a list: Prune takes the defaults of missing keys, so that items which differ for
// Prune differ with their defaults and without.
func (s *Schema) prepareShape(at *Shape, notes *document.Noter, alone bool) {
	if at == nil || at.form.Of != nil {
		return // a shape of a document may lead back to itself
	}
	at.object.notes, at.keeps = notes, at.keeps || at.preserves
	at.form.Of, at.form.Glance = at, glanceOf(at)
	if at.list.items != nil {
		at.list.items.keeps = at.keeps
	}
	inside := alone && !at.deep()
	for i := range at.object.properties {
		p := &at.object.properties[i]
		if p.implied == objectMeta {
			s.prepareShape(p.Shape, nil, false) // what is in metadata is noted on by the shape of every metadata
			continue
		}
		s.prepareShape(p.Shape, notes, inside)
	}
	for i := range at.object.defaults {
		f := &at.object.defaults[i]
		f.harmless = alone && at.flat && at.object.size == nil && s.takes(f.shape, f.shape.def)
	}
	s.prepareShape(at.object.additional, notes, inside)
	s.prepareShape(at.list.items, notes, inside)
	at.noteFillings()
	at.form = formOf(at)
}

// Noted reports whether the notes on a document come from Prune for this schema.
func (s *Schema) Noted(d *document.Document) bool { return d.NotedBy(s.notes) }

// takes reports whether a value is right.
func (s *Schema) takes(shape *Shape, raw []byte) bool {
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		return false
	}
	defer d.Release()
	w := s.validator(d.Root(), document.Node{})
	defer w.release()
	return w.matches(shape, d.Root())
}

// right reports whether a value is right, if what is in it may be marked.
func (w *validator) right(s *Shape, v document.Node) bool {
	w.failed = false
	w.value(s, v, document.Node{})
	return !w.failed
}

// flat is right for a list of a flat shape in which all is right.
func (w *validator) flat(s *Shape, v document.Node) bool {
	if s.accepts[document.Array] != match || s.list.size != nil && s.list.size.Broken(v.Len()) != 0 {
		return false
	}
	if s.list.kind == nil {
		return true
	}
	w.failed = false
	w.distinct(s.list.kind, v)
	return !w.failed
}

// plain is right for a scalar of a plain shape.
func (w *validator) plain(s *Shape, c *document.Cursor, kind document.Kind) bool {
	verdict := s.accepts[kind]
	switch {
	case verdict == mismatch:
		return false
	case kind == document.String:
		if s.text == nil && s.enum == nil {
			return true
		}
		text, ok := c.Text()
		if !ok {
			text = w.str(c.Node())
		}
		return s.takesText(text)
	case kind == document.Number:
		n := compare.NumberOf(c.Node())
		return (verdict == match || n.Integral()) && (s.number == nil || s.number.Takes(n)) &&
			(s.enum == nil || s.enum.HasNumber(n))
	}
	return s.enum == nil || s.enum.Has(c.Node())
}

// str is the value of a string until the next call.
func (w *validator) str(v document.Node) string {
	if !v.Escaped() {
		return v.Str()
	}
	w.decoded = v.AppendStr(w.decoded[:0])
	return unsafe.String(unsafe.SliceData(w.decoded), len(w.decoded))
}

// passes reports whether a value need not be looked at again: it is marked, or nothing can be wrong with it.
func (w *validator) passes(s *Shape, v document.Node) bool {
	return w.weighing == 0 && (w.trusting && v.Marked(document.Sound) || s.fits(v))
}
