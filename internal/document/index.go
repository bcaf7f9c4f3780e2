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
// number of an entry or 0. Removed members stay in the table until it grows.
const (
	indexLast  = iota // the object's last child
	indexUsed         // how many slots are taken
	indexBits         // the binary logarithm of the number of slots
	indexSlots        // the first slot
)

// table returns the slots of the table at the place.
func (d *Document) table(place uint32) []uint32 {
	from := place + indexSlots
	return d.index[from : from+1<<d.index[place+indexBits]]
}

// newTable makes an empty table for a number of members and returns its place.
func (d *Document) newTable(members, last uint32) uint32 {
	width := bits.Len32(members + members/2)
	place := len(d.index)
	size := indexSlots + 1<<width
	d.index = slices.Grow(d.index, size)[:place+size]
	clear(d.index[place:])
	d.index[place+indexLast] = last
	d.index[place+indexBits] = uint32(width)
	return uint32(place)
}

// indexParsed makes the table of the object f, which the parser has just closed. It returns the
// first member with a forbidden repeated key, 0 if there is none.
func (d *Document) indexParsed(tape []entry, src []byte, node, last, count uint32, limits *Limits) uint32 {
	place := d.newTable(count, last)
	d.index[place+indexUsed] = count
	slots := d.table(place)
	mask := uint32(len(slots) - 1)
	object := &tape[node]
	k := node + 1
	if object.meta&flagHead != 0 {
		k = tape[last].next &^ wrap
	}
	for {
		e := &tape[k]
		at := e.hash & mask
		for ; slots[at] != 0; at = (at + 1) & mask {
			if o := &tape[slots[at]]; o.hash == e.hash && sameKey(src, o, e) && !limits.allow(o, e) {
				return k
			}
		}
		slots[at] = k
		if k == last {
			break
		}
		k = e.next
	}
	object.last = place
	object.meta |= flagIndexed
	return 0
}

// indexAdded brings the member i, which has just been linked to the object, into
// the object's table, and makes the table if the object has become large.
func (d *Document) indexAdded(object, i uint32) {
	e := &d.tape[object]
	if e.meta&flagIndexed == 0 {
		if e.count > indexFrom {
			d.reindex(object)
		}
		return
	}
	slots := d.table(e.last)
	used := &d.index[e.last+indexUsed]
	if *used += 1; int(*used) > len(slots)/4*3 {
		d.reindex(object)
		return
	}
	d.occupy(slots, i)
}

// reindex makes a new table for the object from its chain.
func (d *Document) reindex(object uint32) {
	e := &d.tape[object]
	place := d.newTable(2*e.count, d.lastOf(e))
	slots := d.table(place)
	for k := d.chainFirst(object); k != 0; k = d.chainNext(k) {
		if d.tape[k].meta&flagRemoved == 0 {
			d.occupy(slots, k)
		}
	}
	d.index[place+indexUsed] = e.count
	e.last = place
	e.meta |= flagIndexed
}

func (d *Document) occupy(slots []uint32, i uint32) {
	mask := uint32(len(slots) - 1)
	at := d.tape[i].hash & mask
	for slots[at] != 0 {
		at = (at + 1) & mask
	}
	slots[at] = i
}

// findIndexed is find for an object with a table.
func (d *Document) findIndexed(e *entry, key string, hash uint32) uint32 {
	slots := d.table(e.last)
	mask := uint32(len(slots) - 1)
	for at := hash & mask; slots[at] != 0; at = (at + 1) & mask {
		o := &d.tape[slots[at]]
		if o.hash == hash && o.meta&flagRemoved == 0 && d.keyIs(o, key) {
			return slots[at]
		}
	}
	return 0
}
