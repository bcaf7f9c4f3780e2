package document

import "unsafe"

// A Glance says at once of most scalars that they are right: by their kind, a string by how many
// bytes it has, a number by its value as an integer. Of what it does not take it says nothing.
type Glance struct {
	// A string without escapes is right that has Shortest to Longest bytes, an integer from Least to
	// Most. None is if the first is greater than the second.
	Least, Most       int64
	Shortest, Longest int32

	Kinds KindSet // any value of these kinds is right
}

// NoGlance takes nothing.
func NoGlance() Glance { return Glance{Shortest: 1, Least: 1} }

// A KindSet is a set of kinds.
type KindSet uint8

// Add adds a kind.
func (s *KindSet) Add(kind Kind) { *s |= 1 << kind }

// Takes reports whether the value at the cursor is right.
func (g *Glance) Takes(c *Cursor) bool { return g.takes(c.d, c.e) }

func (g *Glance) takes(d *Document, e *entry) bool {
	switch meta := e.meta; {
	case g.Kinds>>(meta&kindMask)&1 != 0:
		return true
	case meta&(kindMask|flagEscaped) == uint32(String):
		size := int32(e.end-e.off) - 2
		return size >= g.Shortest && size <= g.Longest
	case meta&flagInteger != 0:
		return g.takesInteger(d.source(e)[e.off:e.end])
	}
	return false
}

// maxQuick is how many bytes a number may have whose value a Glance looks at: its digits cannot be too
// many for an int64.
const maxQuick = 18

func (g *Glance) takesInteger(number []byte) bool {
	if len(number) > maxQuick || g.Least > g.Most {
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
	return i >= g.Least && i <= g.Most
}

// Known is what a walk knows of the members of an object: their names, and what it asks of each. It is
// a hash table like [Names], which has all that is asked of most members in one cache line for each.
type Known struct {
	table  []knownMember // a power of two, at most half of it in use
	names  Names
	factor uint32
	shift  uint8
}

// A KnownMember is what a walk asks of the members with a name.
type KnownMember struct {
	Glance Glance
	Bit    uint8 // in the mask of the members that are there
}

// A knownMember is a KnownMember with its name, as a nameMark has it.
type knownMember struct {
	first, mask, last uint64
	hash              uint32
	place             uint16 // of the name, from 1
	size, bit         uint8  // a size of 255 is that of no name which is compared here
	glance            Glance
}

// NewKnown makes the table of names, which has what is asked of each.
func NewKnown(names Names, members []KnownMember) Known {
	k := Known{names: names, factor: names.factor, shift: names.shift}
	if len(names.slots) == 0 {
		return k
	}
	k.table = make([]knownMember, len(names.slots))
	for at, place := range names.slots {
		if place == 0 {
			continue
		}
		name, member := &names.names[place-1], &members[place-1]
		k.table[at] = knownMember{
			first: name.first, mask: name.mask, last: name.last, hash: name.hash, place: place,
			size: uint8(min(name.size, 255)), bit: member.Bit, glance: member.Glance,
		}
	}
	return k
}

// Pass moves on over members that are known and right at a glance, and marks them. It stops at the
// first other one, and returns the index of its name, which is -1 if it has none of them; behind the
// last member the Cursor is no longer valid. seen are the bits of the members that were passed. With
// numbered set, the number of each member that has a name is noted on it, from 1, also of the last one.
func (c *Cursor) Pass(k *Known, numbered bool, marks Marks) (place int, seen uint64) {
	d, e := c.d, c.e
	body, tape, table := d.body, d.tape, k.table
	bits := marks.bits()
	for e != nil {
		meta, size := e.meta, e.keyEnd-e.key
		if meta&(flagKeyEscaped|flagSide) != 0 || size > maxShort || int(e.key)+8 > len(body) || len(table) == 0 {
			if place = k.names.search(d, e); place >= 0 && numbered {
				e.meta = meta&(1<<noteShift-1) | uint32(place+1)<<noteShift
			}
			return place, seen
		}
		key := unsafe.Add(unsafe.Pointer(unsafe.SliceData(body)), e.key)
		first := load64(key, 0)
		at := int(e.hash * k.factor >> (k.shift & 31))
		m := &table[at&(len(table)-1)]
		for m.hash != e.hash || (first^m.first)&m.mask != 0 || uint32(m.size) != size || size > 8 && load64(key, int(size)-8) != m.last {
			if m.place == 0 {
				return -1, seen
			}
			at++
			m = &table[at&(len(table)-1)]
		}
		if m.place == 0 { // a name that is empty
			return -1, seen
		}
		if numbered {
			meta = meta&(1<<noteShift-1) | uint32(m.place)<<noteShift
		}
		switch {
		case m.glance.Kinds>>(meta&kindMask)&1 != 0:
		case meta&(kindMask|flagEscaped) == uint32(String) && int32(e.end-e.off)-2 >= m.glance.Shortest && int32(e.end-e.off)-2 <= m.glance.Longest:
		case meta&flagInteger != 0 && m.glance.takesInteger(body[e.off:e.end]):
		default:
			e.meta = meta
			return int(m.place) - 1, seen
		}
		e.meta = meta | bits
		seen |= 1 << (m.bit & 63)
		i := e.next
		for e = nil; int32(i) > 0; i = tape[i].next {
			if tape[i].meta&flagRemoved == 0 {
				e = &tape[i]
				break
			}
		}
		c.e, c.i = e, i
	}
	return -1, seen
}

// PassValues is Pass for members or items that have one glance.
func (c *Cursor) PassValues(g *Glance, marks Marks) {
	at, bits := *c, marks.bits()
	for at.e != nil && g.takes(at.d, at.e) {
		at.e.meta |= bits
		at.Next()
	}
	*c = at
}
