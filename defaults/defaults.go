// Package defaults fills in what objects leave unset. It only ever sets unset
// fields: nothing that a client gave is changed, other than a null where the
// schema has no null, which stands for an unset field. Applying defaults again
// changes nothing.
package defaults

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Apply fills in the defaults of a schema, at any depth, in the items of lists
// and the values of maps, as k8s.io/apiextensions-apiserver does. The members
// that it adds to an object stand behind those that are there, sorted by name.
func Apply(d *document.Document, s *schema.Schema) {
	fill(d, s.Root(), d.Root())
}

// fill completes what is in a value, not the value itself.
func fill(d *document.Document, s *schema.Shape, v document.Node) {
	switch v.Kind() {
	case document.Object:
		fillMembers(d, s, v)
		if values := s.Additional(); values.Default() != nil || values.HasDefaults() {
			for m := v.First(); m.Valid(); m = m.Next() {
				if s.Property(m.Key()) == nil {
					fillElement(d, values, m)
				}
			}
		}
	case document.Array:
		if items := s.Items(); items.Default() != nil || items.HasDefaults() {
			for n := v.First(); n.Valid(); n = n.Next() {
				fillElement(d, items, n)
			}
		}
	}
}

func fillMembers(d *document.Document, s *schema.Shape, v document.Node) {
	properties := s.Properties()
	for _, i := range s.Defaults() {
		p := &properties[i]
		raw := p.Shape.Default()
		switch m, found := v.Lookup(p.Key()); {
		case !found:
			if raw != nil {
				d.Add(v, p.Key(), raw) // the defaults inside it are in it
			}
		case m.Kind() != document.Null:
			if p.Shape.HasDefaults() {
				fill(d, p.Shape, m)
			}
		case raw != nil && !p.Shape.Nullable():
			d.Replace(m, raw)
		}
	}
}

// fillElement completes an item of a list or a value of a map, which is there at
// any rate.
func fillElement(d *document.Document, s *schema.Shape, v document.Node) {
	if v.Kind() != document.Null {
		fill(d, s, v)
	} else if raw := s.Default(); raw != nil && !s.Nullable() {
		d.Replace(v, raw)
	}
}
