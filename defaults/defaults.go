// Package defaults fills in what objects leave unset. It only ever sets unset fields: nothing that
// a client gave is changed, other than a null that the schema does not allow, which stands for an
// unset field. Applying defaults again changes nothing.
package defaults

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Apply fills in the defaults of a schema, at any depth, in the items of lists
// and the values of maps, as k8s.io/apiextensions-apiserver does. The members
// that it adds to an object stand behind the ones that are there, sorted by name.
func Apply(d *document.Document, s *schema.Schema) { ApplyWithin(d, s, math.MaxInt) }

// ApplyWithin is Apply up to a size: if the document becomes longer than most bytes it returns
// false, and some defaults are not set. A long list of empty objects would become many times as
// long with the defaults of each.
func ApplyWithin(d *document.Document, s *schema.Schema, most int) bool {
	return newFiller(d, s, most).fillRoot(s, d.Root())
}

// filler sets defaults until the document is too long.
type filler struct {
	*document.Document
	most  int
	noted bool // the marks of values come from the schema's shapes
	// keepsNulls says that no default takes the place of null.
	keepsNulls bool
}

func newFiller(d *document.Document, s *schema.Schema, most int) filler {
	return filler{Document: d, most: most, noted: s.Noted(d)}
}

// fillRoot completes a whole object.
func (f filler) fillRoot(s *schema.Schema, object document.Node) bool {
	if !f.noted || !object.Marked(document.Complete) {
		f.fill(s.Root(), object)
	}
	return !f.full()
}

func (f filler) full() bool { return f.Extent() > f.most }

// fill completes what is in a value, not the value itself.
func (f filler) fill(s *schema.Shape, v document.Node) {
	switch v.Kind() {
	case document.Object:
		f.fillMembers(s, v)
	case document.Array:
		if items := s.Items(); items.Fillable() {
			for c := v.Children(); c.Valid() && !f.full(); c.Next() {
				if !f.noted || !c.Marked(document.Complete) {
					f.fillElement(items, &c)
				}
			}
		}
	}
}

// fillMembers completes the members that are there, and adds the missing ones.
func (f filler) fillMembers(s *schema.Shape, v document.Node) {
	if few := s.Fillings(); few != nil {
		f.fillFew(few, v)
		return
	}
	var there uint64
	for c := v.Children(); c.Valid() && !f.full(); c.Next() {
		shape := s.Additional()
		if p := s.PropertyAt(&c); p != nil {
			shape = p.Shape
			there |= p.Bit()
		}
		if shape.Fillable() && (!f.noted || !c.Marked(document.Complete)) {
			f.fillElement(shape, &c)
		}
	}
	s.Fill(v, there)
}

// fillFew is fillMembers for an object about which little can be filled in.
func (f filler) fillFew(few []schema.Filling, v document.Node) {
	for i := range few {
		if f.full() {
			return
		}
		m, found := v.Step(&few[i].Name)
		if !found {
			few[i].AddTo(v)
		} else if c := m.Cursor(); !f.noted || !c.Marked(document.Complete) {
			f.fillElement(few[i].Shape, &c)
		}
	}
}

// fillElement completes a value that is there at any rate.
func (f filler) fillElement(s *schema.Shape, c *document.Cursor) {
	if c.Kind() != document.Null {
		if s.HasDefaults() {
			f.fill(s, c.Node())
		}
	} else if raw := s.Default(); raw != nil && !s.Nullable() && !f.keepsNulls {
		f.Replace(c.Node(), raw)
	}
}
