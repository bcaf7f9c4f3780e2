package schema

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// A memberDefault is a property with its default, ready to be added to an object.
type memberDefault struct {
	member   document.Member
	harmless bool   // nothing can be wrong with it, nor, on its account, with what is around it
	bit      uint64 // of the property; 0 if it has none
	key      document.Name
	shape    *Shape
}

// Bit 0 of the mask of members that are there covers all members without a bit of their own. The
// highest bit is no member's: a mask that has it is never complete.
const (
	maxBits        = 62
	never   uint64 = 1 << 63
)

// assignBits gives the properties that are required or have a default their bits, and prepares the
// defaults.
func (s *Shape) assignBits() {
	s.object.defaults, s.object.demanded, s.object.defaulted = nil, 0, 0
	bits, demanded := 0, 0
	for i := range s.object.properties {
		p := &s.object.properties[i]
		required, raw := slices.Contains(s.object.required, document.NewName(p.Name)), p.Shape.Default()
		if !required && raw == nil {
			continue
		}
		bit := uint64(0)
		if bits++; bits <= maxBits {
			p.bit, bit = uint8(bits), 1<<bits
		}
		if required && bit != 0 {
			s.object.demanded |= bit
			demanded++
		}
		if raw != nil {
			s.object.defaulted |= bit
			s.object.defaults = append(s.object.defaults,
				memberDefault{member: document.NewMember(p.Name, raw), bit: bit, key: document.NewName(p.Name),
					shape: p.Shape})
		}
	}
	if demanded < len(s.object.required) {
		s.object.demanded |= never
	}
	if bits > maxBits && s.object.defaults != nil {
		s.object.defaulted |= never
	}
}

// Bit is the property's in the mask of the members that are there, for [Shape.Fill].
func (p *Property) Bit() uint64 { return 1 << (p.bit & 63) }

// Fill adds to an object the members that have a default, and are not there. there has the bits of
// the members that are.
func (s *Shape) Fill(object document.Node, there uint64) {
	if there&s.object.defaulted == s.object.defaulted {
		return
	}
	for i := range s.object.defaults {
		f := &s.object.defaults[i]
		if there&f.bit != 0 {
			continue
		}
		if f.bit == 0 {
			if _, found := object.Lookup(f.key); found {
				continue
			}
		}
		object.Document().Fill(object, &f.member, f.harmless)
	}
}

// A Filling is a property about which anything may be filled in: what is in it, or the property itself.
type Filling struct {
	Name  document.Name
	Shape *Shape

	missing *memberDefault // its default, or nil
}

// AddTo adds the property to an object that does not have it, if it has a default.
func (f *Filling) AddTo(object document.Node) {
	if f.missing != nil {
		object.Document().Fill(object, &f.missing.member, f.missing.harmless)
	}
}

// fewFillings is up to how many properties are looked up in an object, rather than each of its members in the shape.
const fewFillings = 4

// Fillings are the properties of an object about which anything may be filled in, sorted by name, if they are few and
// nothing is filled in about other members; else nil.
func (s *Shape) Fillings() []Filling { return s.object.fillings }

// noteFillings makes the Fillings.
func (s *Shape) noteFillings() {
	var few []Filling
	for i := range s.object.properties {
		p := &s.object.properties[i]
		if !p.Shape.Fillable() {
			continue
		}
		f := Filling{Name: document.NewName(p.Name), Shape: p.Shape}
		for j := range s.object.defaults {
			if d := &s.object.defaults[j]; d.key == f.Name {
				f.missing = d
			}
		}
		if few = append(few, f); len(few) > fewFillings {
			break
		}
	}
	if s.object.fillings = few; len(few) > fewFillings || s.object.additional.Fillable() {
		s.object.fillings = nil
	}
}

// Fillable reports whether anything about the value may be filled in: what is in it, or the value
// itself if it is null.
func (s *Shape) Fillable() bool { return s != nil && (s.hasDefaults || s.def != nil) }

// DefaultedParts are the objects and lists that have to be read to fill in defaults, except computed ones.
func (s *Schema) DefaultedParts() *document.Projection {
	if s == nil || !s.root.hasDefaults {
		return new(document.Projection)
	}
	return s.root.defaultedParts(map[*Shape]*document.Projection{})
}

// defaultedParts are nil for a shape without defaults. made are the ones of other shapes.
func (s *Shape) defaultedParts(made map[*Shape]*document.Projection) *document.Projection {
	if !s.HasDefaults() {
		return nil
	}
	if made[s] != nil {
		return made[s]
	}
	p := &document.Projection{Members: map[string]*document.Projection{}}
	made[s] = p
	p.Others, p.Items = s.object.additional.defaultedParts(made), s.list.items.defaultedParts(made)
	for i := range s.object.properties {
		name, inside := s.object.properties[i].Name, s.object.properties[i].Shape.defaultedParts(made)
		if inside != nil || p.Others != nil {
			p.Members[name] = inside
		}
	}
	return p
}
