package document

import (
	"math/bits"
	"slices"
)

// Objects with more members than this have a hash table, in which the parser
// finds duplicate keys and Get finds members, so that both stay linear however
// many members there are.
const indexFrom = 16

// The table of an object begins at a place in Document.index, which is in the
// object's last field, and consists of these words and 1<<bits slots, each the
// number of an entry or 0.
const (
	indexLast  = iota // the object's last child
	indexTail         // its last child as parsed; members added later follow it in the chain
	indexBits         // the binary logarithm of the number of slots
	indexSlots        // the first slot
)

// buildIndex makes the table of the object f, which has just been closed. It
// returns the first member whose key stood in the object before, 0 without one.
func (d *Document) buildIndex(tape []entry, src []byte, f frame) uint32 {
	width := bits.Len32(f.count + f.count/2)
	place := len(d.index)
	size := indexSlots + 1<<width
	d.index = slices.Grow(d.index, size)[:place+size]
	table := d.index[place:]
	clear(table)
	table[indexLast], table[indexTail], table[indexBits] = f.prev, f.prev, uint32(width)
	slots := table[indexSlots:]
	mask := uint32(len(slots) - 1)

	t := &tape[f.node]
	k := f.node + 1
	if t.meta&flagHead != 0 {
		k = tape[f.prev].next &^ wrap
	}
	for {
		e := &tape[k]
		at := e.hash & mask
		for ; slots[at] != 0; at = (at + 1) & mask {
			if o := &tape[slots[at]]; o.hash == e.hash && sameKey(src, o, e) {
				return k
			}
		}
		slots[at] = k
		if k == f.prev {
			break
		}
		k = e.next
	}
	t.last = uint32(place)
	t.meta |= flagIndexed
	return 0
}

// findIndexed is find for an object with a table.
func (d *Document) findIndexed(e *entry, key string, hash uint32) uint32 {
	table := d.index[e.last:]
	mask := uint32(1)<<table[indexBits] - 1
	slots := table[indexSlots : indexSlots+mask+1]
	for at := hash & mask; slots[at] != 0; at = (at + 1) & mask {
		o := &d.tape[slots[at]]
		if o.hash != hash || !d.keyIs(o, key) {
			continue
		}
		if o.meta&flagRemoved == 0 {
			return slots[at]
		}
		break
	}
	for k := d.chainNext(table[indexTail]); k != 0; k = d.chainNext(k) {
		o := &d.tape[k]
		if o.hash == hash && o.meta&flagRemoved == 0 && d.keyIs(o, key) {
			return k
		}
	}
	return 0
}
