package schema

import (
	"math/bits"

	"github.com/admission-gateway/gateway/internal/document"
)

// A filling is a property with its default, ready to be added to an object.
type filling struct {
	member   *document.Member
	harmless bool // nothing can be wrong with it, nor, on its account, with what is around it
	key      document.Name
	shape    *Shape
}

// prepareFillings makes the fillings of an object whose properties are set.
func (s *Shape) prepareFillings() {
	s.fillings, s.fillable = nil, 0
	for i := range s.properties {
		p := &s.properties[i]
		raw := p.Shape.Default()
		if raw == nil {
			continue
		}
		if len(s.fillings) < 64 {
			p.filled = 1 << len(s.fillings)
			s.fillable |= p.filled
		}
		s.fillings = append(s.fillings, filling{member: document.NewMember(p.Name, raw), key: p.key, shape: p.Shape})
	}
}

// Filled is the bit of the property for [Shape.Fill]; nil has none.
func (p *Property) Filled() uint64 { return p.filled }

// Fill adds to an object the members that have a default, and are not there. there has the bits [Property.Filled] of
// those that are.
func (s *Shape) Fill(object document.Node, there uint64) {
	d := object.Document()
	for missing := s.fillable &^ there; missing != 0; missing &= missing - 1 {
		f := &s.fillings[bits.TrailingZeros64(missing)]
		d.Fill(object, f.member, f.harmless)
	}
	for i := 64; i < len(s.fillings); i++ {
		f := &s.fillings[i]
		if _, found := object.Lookup(f.key); !found {
			d.Fill(object, f.member, f.harmless)
		}
	}
}

// Fillable tells whether anything about the value may be filled in: what is in it, or the value itself where it is null.
func (s *Shape) Fillable() bool { return s != nil && (s.hasDefaults || s.def != nil) }
