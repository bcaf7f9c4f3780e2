package schema

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// table finds the property of an object by its name, without a map: a power of two of slots, filled at compile time
// with the multiplier that makes the fewest names share a slot.
type table struct {
	slots      []uint16 // index into properties plus one; 0 is empty
	multiplier uint64
	shift      uint8
	folded     []foldedName // by hash, for names that are no property
}

type foldedName struct {
	hash uint64
	at   uint16
}

// word packs what tells the names of most schemas apart: length, the first and the last four bytes.
func word(name string) uint64 {
	n := len(name)
	if n >= 4 {
		b := name[n-4:]
		first := uint64(name[0]) | uint64(name[1])<<8 | uint64(name[2])<<16 | uint64(name[3])<<24
		last := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
		return (first | last<<32) + uint64(n)<<56
	}
	if n == 0 {
		return 0
	}
	return uint64(name[0]) | uint64(name[n>>1])<<8 | uint64(name[n-1])<<16 | uint64(n)<<56
}

// newTable builds the table of properties that are sorted by name. There are at most 1<<16-2 of them: a schema with
// more is refused before.
func newTable(properties []Property) table {
	if len(properties) == 0 {
		return table{}
	}
	size := bits.Len(uint(len(properties)*2 - 1)) // slots are at most half full
	best, fewest := table{}, -1
	multiplier := uint64(0x9e3779b97f4a7c15)
	for range 64 {
		t := table{slots: make([]uint16, 1<<size), multiplier: multiplier, shift: uint8(64 - size)}
		extra := 0
		for i := range properties {
			slot := t.slot(properties[i].Name)
			for t.slots[slot] != 0 {
				slot = (slot + 1) & uint64(len(t.slots)-1)
				extra++
			}
			t.slots[slot] = uint16(i + 1)
		}
		if fewest < 0 || extra < fewest {
			best, fewest = t, extra
		}
		if extra == 0 {
			break
		}
		multiplier = multiplier*0xd1342543de82ef95 + 2 // odd plus even stays odd
	}
	for i := range properties {
		best.folded = append(best.folded, foldedName{hash: foldHash(properties[i].Name), at: uint16(i)})
	}
	slices.SortFunc(best.folded, func(a, b foldedName) int {
		if a.hash < b.hash {
			return -1
		}
		if a.hash > b.hash {
			return 1
		}
		return int(a.at) - int(b.at)
	})
	return best
}

func (t *table) slot(name string) uint64 {
	return word(name) * t.multiplier >> t.shift
}

// find is the index of the property with this name, or -1.
func (t *table) find(properties []Property, name string) int {
	if len(t.slots) == 0 {
		return -1
	}
	slot := t.slot(name)
	for {
		at := t.slots[slot]
		if at == 0 {
			return -1
		}
		if properties[at-1].Name == name {
			return int(at - 1)
		}
		slot = (slot + 1) & uint64(len(t.slots)-1)
	}
}

// variant is the index of a property whose name differs from this one in case alone, or -1. What is one case away is
// what Go's encoding/json takes for the same field: simple Unicode folding, so 'K' (U+212A) is a 'k'.
func (t *table) variant(properties []Property, name string) int {
	if len(t.folded) == 0 {
		return -1
	}
	hash := foldHash(name)
	i, found := slices.BinarySearchFunc(t.folded, hash, func(f foldedName, h uint64) int {
		if f.hash < h {
			return -1
		}
		if f.hash > h {
			return 1
		}
		return 0
	})
	for ; found && i < len(t.folded) && t.folded[i].hash == hash; i++ {
		if p := properties[t.folded[i].at].Name; strings.EqualFold(p, name) {
			return int(t.folded[i].at)
		}
	}
	return -1
}

// foldHash is equal for names that strings.EqualFold holds equal. The names of a schema are few and its author's, so
// that it need not withstand prepared collisions: they only cost comparisons with those few.
func foldHash(name string) uint64 {
	const prime = 0x100000001b3
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			h = (h ^ uint64(c)) * prime
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		i += size
		h = (h ^ uint64(foldRune(r))) * prime
	}
	return h
}

// foldRune is one rune for each set of runes that fold into each other; lower case for ASCII letters.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		if next < least {
			least = next
		}
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
