package schema

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// A filling is a property with its default, ready to be added to an object.
type filling struct {
	member   document.Member
	harmless bool   // nothing can be wrong with it, nor, on its account, with what is around it
	bit      uint64 // of the property; 0 where it has none
	key      document.Name
	shape    *Shape
}

// Bit 0 of the mask of members that are there is that of all which have no bit of their own; the highest is no member's,
// and is in the masks of what nothing can be seen to have as a whole.
const (
	maxBits        = 62
	never   uint64 = 1 << 63
)

// assignBits gives the properties that are required or have a default their bits, and makes the fillings.
func (s *Shape) assignBits() {
	s.fillings, s.demanded, s.fillable = nil, 0, 0
	bits, demanded := 0, 0
	for i := range s.properties {
		p := &s.properties[i]
		required, raw := slices.Contains(s.required, document.NewName(p.Name)), p.Shape.Default()
		if !required && raw == nil {
			continue
		}
		bit := uint64(0)
		if bits++; bits <= maxBits {
			p.bit, bit = uint8(bits), 1<<bits
		}
		if required && bit != 0 {
			s.demanded |= bit
			demanded++
		}
		if raw != nil {
			s.fillable |= bit
			s.fillings = append(s.fillings, filling{member: document.NewMember(p.Name, raw), bit: bit, key: document.NewName(p.Name), shape: p.Shape})
		}
	}
	if demanded < len(s.required) {
		s.demanded |= never
	}
	if bits > maxBits && s.fillings != nil {
		s.fillable |= never
	}
}

// Bit is the property's in the mask of the members that are there, for [Shape.Fill].
func (p *Property) Bit() uint64 { return 1 << (p.bit & 63) }

// Fill adds to an object the members that have a default, and are not there. there has the bits of those that are.
func (s *Shape) Fill(object document.Node, there uint64) {
	if there&s.fillable == s.fillable {
		return
	}
	for i := range s.fillings {
		f := &s.fillings[i]
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

// Fillable tells whether anything about the value may be filled in: what is in it, or the value itself where it is null.
func (s *Shape) Fillable() bool { return s != nil && (s.hasDefaults || s.def != nil) }
