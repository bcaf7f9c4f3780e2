package document

import (
	"strings"
	"unsafe"
)

// Names is a set of names that finds which of them a member has, by the hash
// that the parser made of its key: without decoding the key, and with one
// comparison, which confirms it. It is immutable, and small, so that look-ups
// find it in the processor's nearest cache.
type Names struct {
	slots  []uint16 // number of a name by hash, from 1; a power of two, at most half of them in use
	names  []nameMark
	text   string // the names, one after the other
	factor uint32 // spreads hashes over the slots
	shift  uint8
}

// A nameMark is a name with its hash, and with its first and its last eight bytes as words if it has
// at most maxShort: a key of its size is the name if it differs from neither, in the first one where
// mask has bits. off is its offset in the text.
type nameMark struct {
	hash, size        uint32
	first, mask, last uint64
	off               uint32
}

// MaxNames is how many names Names can have.
const MaxNames = 1<<16 - 2

// NewNames makes the set of at most MaxNames names, which must differ. Of some
// factors it takes the one by which the fewest names share a slot, mostly none:
// a look-up that always ends at the first slot is one that processors foresee.
func NewNames(names []string) Names {
	if len(names) == 0 {
		return Names{}
	}
	bits := 1
	for 1<<bits < 2*len(names) {
		bits++
	}
	s := Names{text: strings.Join(names, ""), names: make([]nameMark, 0, len(names)), shift: uint8(32 - bits)}
	off := 0
	for _, text := range names {
		name := NewName(text)
		s.names = append(s.names, nameMark{hash: name.hash, size: uint32(len(text)), first: name.first, mask: name.mask,
			last: name.last, off: uint32(off)})
		off += len(text)
	}
	slots := make([]uint16, 1<<bits)
	for try, least := uint32(0), len(names)+1; try < 64 && least > 0; try++ {
		factor := 0x9e3779b1 + try*0x85ebca6a // odd
		clear(slots)
		shared := 0
		for i := range s.names {
			at := int(s.names[i].hash * factor >> s.shift)
			if slots[at] != 0 {
				shared++
			}
			for slots[at] != 0 {
				at = (at + 1) & (len(slots) - 1)
			}
			slots[at] = uint16(i + 1)
		}
		if shared < least {
			least, s.factor, s.slots = shared, factor, slots
			slots = make([]uint16, len(slots))
		}
	}
	return s
}

// Member is the index of the name that the member has, or -1.
func (s *Names) Member(n Node) int {
	if n.d == nil {
		return -1
	}
	return s.find(n.d, &n.d.tape[n.i])
}

// find is Member for an entry. Of most keys it is decided here which name they are: they are short,
// without escapes, and stand in the body.
func (s *Names) find(d *Document, e *entry) int {
	size := e.keyEnd - e.key
	if len(s.slots) == 0 || e.meta&(flagMember|flagKeyEscaped|flagSide) != flagMember || size > maxShort ||
		int(e.key)+8 > len(d.body) {
		return s.search(d, e)
	}
	key := unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.body)), e.key)
	first := load64(key, 0)
	for slot := e.hash * s.factor >> (s.shift & 31); ; slot = (slot + 1) & uint32(len(s.slots)-1) {
		place := s.at(slot)
		if place == 0 {
			return -1
		}
		if name := s.named(place); name.size == size && (first^name.first)&name.mask == 0 &&
			(size <= 8 || load64(key, int(size)-8) == name.last) {
			return int(place) - 1
		}
	}
}

// at is the place in a slot, which must be there.
func (s *Names) at(slot uint32) uint16 {
	return *(*uint16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.slots)), uintptr(slot)*unsafe.Sizeof(s.slots[0])))
}

// named is the name at a place of a slot.
func (s *Names) named(place uint16) *nameMark {
	return (*nameMark)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.names)),
		uintptr(place-1)*unsafe.Sizeof(nameMark{})))
}

// search is find for any key.
func (s *Names) search(d *Document, e *entry) int {
	slots := s.slots
	if len(slots) == 0 || e.meta&flagMember == 0 {
		return -1
	}
	for at := int(e.hash * s.factor >> (s.shift & 31)); ; at++ {
		i := int(slots[at&(len(slots)-1)]) - 1
		if i < 0 {
			return -1
		}
		if name := &s.names[i]; name.hash == e.hash && d.keyIs(e, s.textOf(name)) {
			return i
		}
	}
}

func (s *Names) textOf(name *nameMark) string { return s.text[name.off : name.off+name.size] }

// Index is the index of the name, or -1.
func (s *Names) Index(name string) int {
	slots := s.slots
	if len(slots) == 0 {
		return -1
	}
	hash := hashString(name)
	for at := int(hash * s.factor >> (s.shift & 31)); ; at++ {
		i := int(slots[at&(len(slots)-1)]) - 1
		if i < 0 {
			return -1
		}
		if mark := &s.names[i]; mark.hash == hash && s.textOf(mark) == name {
			return i
		}
	}
}

// A Member is a member that is added to many objects, made ready for that: its
// text is written, and a scalar is parsed. It is valid in this process only.
type Member struct {
	text  []byte // the key in its quotes, a colon, the value
	entry entry  // as in a document that begins with text
	ready bool   // the entry is all there is to it
}

// NewMember makes a member with the key and the value raw, which must be valid
// JSON.
func NewMember(key string, raw []byte) Member {
	text := append(append(AppendString(nil, key), ':'), raw...)
	d := new(Document)
	if err := d.parse(append(append([]byte{'{'}, text...), '}'), unlimited()); err != nil {
		panic("document: a member with a value that is not JSON: " + err.Error())
	}
	m := Member{text: text, entry: d.tape[1]}
	if m.ready = Kind(m.entry.meta&kindMask) < Object; !m.ready {
		m.entry = entry{off: m.entry.off, key: m.entry.key, keyEnd: m.entry.keyEnd, hash: m.entry.hash,
			meta: m.entry.meta & placeMask}
	}
	e := &m.entry
	e.off, e.end, e.key, e.keyEnd = e.off-1, e.end-1, e.key-1, e.keyEnd-1
	e.meta |= flagInserted | flagSide
	return m
}

// Fill adds a member that the object is known not to have: two members with one
// key would be the caller's mistake. With harmless set, the object and what is
// around it keep their marks.
func (d *Document) Fill(object Node, m *Member, harmless bool) {
	if !d.owns(object) || object.Kind() != Object {
		return
	}
	i, from := uint32(len(d.tape)), uint32(len(d.side))
	if !d.roomAside(len(m.text)) {
		return
	}
	d.side = append(d.side, m.text...)
	if !d.addEntry(m.entry) {
		return
	}
	e := &d.tape[i]
	e.key += from
	e.keyEnd += from
	e.off += from
	e.end += from
	e.parent = object.i
	d.link(object.i, i)
	if harmless {
		d.dirty(object.i)
	} else {
		d.touch(object.i)
	}
	if !m.ready {
		d.scanSide(int(e.off), i)
	}
}

// add is Set for a member that the object does not have.
func (d *Document) add(object Node, key string, hash uint32, raw []byte) Node {
	i := d.newEntry(object.i)
	from := uint32(len(d.side))
	if i == 0 || !d.roomAside(len(key)+len(`"":`)) { // escapes are left to the end of the edit
		return Node{}
	}
	d.side = AppendString(d.side, key)
	e := &d.tape[i]
	e.key, e.keyEnd, e.hash = from+1, uint32(len(d.side))-1, hash
	e.meta |= flagMember
	if int(e.keyEnd-e.key) != len(key) {
		e.meta |= flagKeyEscaped
	}
	d.side = append(d.side, ':')
	d.link(object.i, i)
	d.touch(object.i)
	return d.write(i, raw)
}
