package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// Most objects are right, and every one of their members is looked up and looked at by Prune anyhow. So Prune leaves two
// notes for the walks after it: on a member the number of its property, and a mark on each value that is right by its
// shape, with all that is in it. Defaults finds properties by their numbers, and Validate passes over what is marked.
// An edit takes the marks of what is around it away. What Validate says is what it would say without the notes.

// settle says by whom the values of each shape are noted on, and which defaults can be added to values that are marked.
func (s *Schema) settle() {
	s.notes = new(document.Noter)
	s.root.settle(s.notes, true)
	s.meta.settle(s.notes, false)
}

// settle does so for a shape and those in it. alone is set where nothing around a value looks into it, other than for
// the keys that tell the items of a list apart: Prune takes their defaults for those that are missing, so that items
// which differ in its eyes differ with their defaults and without.
func (s *Shape) settle(notes *document.Noter, alone bool) {
	if s == nil {
		return
	}
	s.notes = notes
	for i := range s.properties {
		p := &s.properties[i]
		if p.implied == objectMeta {
			p.Shape.settle(nil, false) // what is in metadata is noted on by the shape of every metadata
			continue
		}
		p.harmless = p.fill != nil && alone && s.bare && p.Shape.takes(p.Shape.def)
		p.Shape.settle(notes, alone && !s.deep)
	}
	s.additional.settle(notes, alone && !s.deep)
	s.items.settle(notes, alone && !s.deep)
}

// takes tells whether a value is right.
func (s *Shape) takes(raw []byte) bool {
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		return false
	}
	defer d.Release()
	w := validators.Get().(*validator)
	defer w.release()
	return w.holds(s, d.Root())
}

// right tells whether a value is right, where what is in it may be marked.
func (w *validator) right(s *Shape, v document.Node) bool {
	w.failed = false
	w.value(s, v, document.Node{})
	return !w.failed
}

// passes tells whether a value need not be looked at again: it is marked, or nothing can be wrong with it.
func (w *validator) passes(s *Shape, v document.Node) bool {
	return w.weighing == 0 && (w.trusting && v.Marked() || s.fits(v))
}
