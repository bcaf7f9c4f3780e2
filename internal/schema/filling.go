package schema

import (
	"math/bits"

	"github.com/admission-gateway/gateway/internal/document"
)

// A filling is a property with its default, ready to be added to an object.
type filling struct {
	member   document.Member
	harmless bool // nothing can be wrong with it, nor, on its account, with what is around it
	key      document.Name
	shape    *Shape
}

// prepareFillings makes the fillings of an object whose properties are set.
func (s *Shape) prepareFillings() {
	for i := range s.properties {
		p := &s.properties[i]
		raw := p.Shape.Default()
		if raw == nil {
			continue
		}
		s.fillings = append(s.fillings, filling{member: document.NewMember(p.Name, raw), key: document.NewName(p.Name), shape: p.Shape})
		if bit := len(s.fillings); bit < 64 {
			p.filled = uint8(bit)
			s.fillable |= 1 << bit
		}
	}
}

// Filled is the bit of the property for [Shape.Fill].
func (p *Property) Filled() uint64 { return 1 << (p.filled & 63) }

// Fill adds to an object the members that have a default, and are not there. there has the bits [Property.Filled] of
// those that are.
func (s *Shape) Fill(object document.Node, there uint64) {
	d := object.Document()
	for missing := s.fillable &^ there; missing != 0; missing &= missing - 1 {
		f := &s.fillings[bits.TrailingZeros64(missing)-1]
		d.Fill(object, &f.member, f.harmless)
	}
	for i := 63; i < len(s.fillings); i++ {
		f := &s.fillings[i]
		if _, found := object.Lookup(f.key); !found {
			d.Fill(object, &f.member, f.harmless)
		}
	}
}

// Fillable tells whether anything about the value may be filled in: what is in it, or the value itself where it is null.
func (s *Shape) Fillable() bool { return s != nil && (s.hasDefaults || s.def != nil) }
