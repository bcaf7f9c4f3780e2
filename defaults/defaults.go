// Package defaults fills in what objects leave unset. It only ever sets unset
// fields: nothing that a client gave is changed, other than a null where the
// schema has no null, which stands for an unset field. Applying defaults again
// changes nothing.
package defaults

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Apply fills in the defaults of a schema, at any depth, in the items of lists
// and the values of maps, as k8s.io/apiextensions-apiserver does. The members
// that it adds to an object stand behind those that are there, sorted by name.
func Apply(d *document.Document, s *schema.Schema) { ApplyWithin(d, s, math.MaxInt) }

// ApplyWithin is Apply up to a size: where the document becomes longer than most
// bytes it returns false, and some defaults are not set. A long list of empty
// objects would become many times as long with the defaults of each.
func ApplyWithin(d *document.Document, s *schema.Schema, most int) bool {
	f := filler{d, most}
	f.fill(s.Root(), d.Root())
	return d.Extent() <= most
}

// filler sets defaults until the document is too long.
type filler struct {
	*document.Document
	most int
}

func (f filler) full() bool { return f.Extent() > f.most }

// fill completes what is in a value, not the value itself.
func (f filler) fill(s *schema.Shape, v document.Node) {
	switch v.Kind() {
	case document.Object:
		f.fillMembers(s, v)
		if values := s.Additional(); values.Default() != nil || values.HasDefaults() {
			for m := v.First(); m.Valid() && !f.full(); m = m.Next() {
				if s.Property(m.Key()) == nil {
					f.fillElement(values, m)
				}
			}
		}
	case document.Array:
		if items := s.Items(); items.Default() != nil || items.HasDefaults() {
			for n := v.First(); n.Valid() && !f.full(); n = n.Next() {
				f.fillElement(items, n)
			}
		}
	}
}

func (f filler) fillMembers(s *schema.Shape, v document.Node) {
	properties := s.Properties()
	for _, i := range s.Defaults() {
		p := &properties[i]
		raw := p.Shape.Default()
		switch m, found := v.Lookup(p.Key()); {
		case !found:
			if raw != nil {
				f.Add(v, p.Key(), raw) // the defaults inside it are in it
			}
		case m.Kind() != document.Null:
			if p.Shape.HasDefaults() {
				f.fill(p.Shape, m)
			}
		case raw != nil && !p.Shape.Nullable():
			f.Replace(m, raw)
		}
	}
}

// fillElement completes an item of a list or a value of a map, which is there at
// any rate.
func (f filler) fillElement(s *schema.Shape, v document.Node) {
	if v.Kind() != document.Null {
		f.fill(s, v)
	} else if raw := s.Default(); raw != nil && !s.Nullable() {
		f.Replace(v, raw)
	}
}
