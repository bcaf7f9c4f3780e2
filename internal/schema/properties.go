package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// index makes properties, which are sorted, findable.
func (s *Shape) index() {
	if len(s.object.properties) == 0 {
		return
	}
	names := make([]string, len(s.object.properties))
	for i := range s.object.properties {
		names[i] = s.object.properties[i].Name
	}
	s.object.names = document.NewNames(names)
	s.object.variants = document.NewFoldSet(names...)
}

// property is the property that the member is, or nil.
func (s *Shape) property(m document.Node) *Property {
	if i := s.place(m); i >= 0 {
		return &s.object.properties[i]
	}
	return nil
}

// place is the index of the property that the member is, or -1.
func (s *Shape) place(m document.Node) int {
	if note := m.Note(s.object.notes); note != 0 {
		return note - 1
	}
	return s.object.names.Member(m)
}

// placeAt is place for the member at a cursor.
func (s *Shape) placeAt(c *document.Cursor) int {
	if note := c.Note(s.object.notes); note != 0 {
		return note - 1
	}
	return c.Find(&s.object.names)
}

// PropertyAt is the property that the member at a cursor is, or nil.
func (s *Shape) PropertyAt(c *document.Cursor) *Property {
	if i := s.placeAt(c); i >= 0 {
		return &s.object.properties[i]
	}
	return nil
}

// Property is the named member with this name, or nil.
func (s *Shape) Property(name string) *Property {
	if i := s.object.names.Index(name); i >= 0 {
		return &s.object.properties[i]
	}
	return nil
}

// variant is the name of a property that this name differs from in case alone.
func (s *Shape) variant(name string) (property string, found bool) {
	if s.object.variants == nil {
		return "", false
	}
	return s.object.variants.Variant(name)
}
