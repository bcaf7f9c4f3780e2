package document

import (
	"math"
	"unicode/utf8"
)

// A Glance says at once of most scalars that they are right: by their kind, a string by how many
// bytes it has, a number by its value as an integer. Of what it does not take it says nothing.
type Glance struct {
	least, most int64 // the integers that are right; none if the first is greater than the second
	// the bytes of the shortest string that is right, in its quotes, and how many more there may be
	shortest, span uint32
	Kinds          KindSet // any value of these kinds is right
}

// NoGlance takes nothing.
func NoGlance() Glance { return Glance{least: 1, shortest: math.MaxUint32} }

// Strings lets the Glance take strings without escapes of so many bytes.
func (g *Glance) Strings(shortest, longest int32) {
	if shortest <= longest {
		g.shortest, g.span = uint32(shortest)+2, uint32(longest-shortest)
	}
}

// Characters lets the Glance take strings without escapes that surely have at least so many characters, and at most so
// many: from their bytes, of which a character has up to four. The bounds are -1 for none.
func (g *Glance) Characters(least, most int64) {
	if least > math.MaxInt32/utf8.UTFMax {
		return
	}
	longest := int32(math.MaxInt32)
	if most >= 0 {
		longest = int32(min(most, math.MaxInt32))
	}
	g.Strings(int32(max((least-1)*utf8.UTFMax+1, 0)), longest)
}

// Integers lets the Glance take integers between two, which it takes too.
func (g *Glance) Integers(least, most int64) { g.least, g.most = least, most }

// Of is the Glance that takes values of one kind alone.
func (g Glance) Of(kind Kind) Glance {
	only := NoGlance()
	only.Kinds = g.Kinds & (1 << kind)
	switch kind {
	case String:
		only.shortest, only.span = g.shortest, g.span
	case Number:
		only.least, only.most = g.least, g.most
	}
	return only
}

// A KindSet is a set of kinds.
type KindSet uint8

// Add adds a kind.
func (s *KindSet) Add(kind Kind) { *s |= 1 << kind }

// has reports whether the kind of an entry is in the set, by its meta.
func (s KindSet) has(meta uint32) bool { return uint32(s)&(1<<(meta&kindMask)) != 0 }

// Takes reports whether the value at the cursor is right.
func (g *Glance) Takes(c *Cursor) bool { return g.takes(c.d, c.e, c.e.meta) }

func (g *Glance) takes(d *Document, e *entry, meta uint32) bool {
	return g.takesText(e, meta) || meta&flagInteger != 0 && g.takesInteger(d, e)
}

// takesText is takes for all but integers.
func (g *Glance) takesText(e *entry, meta uint32) bool {
	return meta&(kindMask|flagEscaped) == uint32(String) && e.end-e.off-g.shortest <= g.span || g.Kinds.has(meta)
}

// maxQuick is how many bytes a number may have whose value a Glance looks at: its digits cannot be too
// many for an int64.
const maxQuick = 18

func (g *Glance) takesInteger(d *Document, e *entry) bool {
	number := d.source(e)[e.off:e.end]
	if len(number) > maxQuick || g.least > g.most {
		return false
	}
	negative := number[0] == '-'
	if negative {
		number = number[1:]
	}
	i := int64(0)
	for _, digit := range number {
		i = i*10 + int64(digit-'0')
	}
	if negative {
		i = -i
	}
	return i >= g.least && i <= g.most
}
