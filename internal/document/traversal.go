package document

import "unsafe"

// A Form is what [Traverse] asks of a value, and of all that is in it. It does not change once it is in
// use.
type Form struct {
	// Glance is asked of a scalar. An object or list of one of its Kinds is right, whatever is in it.
	Glance Glance
	// Text reports whether a string is right that the Glance does not take; nil if that is not known.
	Text func(string) bool
	// Enters are the kinds of containers whose contents are looked at. Of these, one of the kinds in
	// Decides is right if its contents are, if it has a right size, and if no required member is missing.
	Enters, Decides KindSet
	Object          ObjectForm
	List            ListForm
	// Of is what the form was made of.
	Of any
}

// An ObjectForm is what is asked of an object.
type ObjectForm struct {
	Known  *Known // its members by their names, if it has any
	Values *Form  // of every member, if there are no names; nil if they are not known
	// Required are the bits of the members that have to be there, and Filled those of the members without
	// which the object is not complete.
	Required, Filled uint64
	Size             Size
}

// A ListForm is what is asked of a list.
type ListForm struct {
	Items *Form // nil if they are not known
	Size  Size
}

// A Size bounds how many members an object has, or items a list.
type Size struct{ Least, Most uint32 }

// Known are the members that an object may have, by their names. It is a hash table like [Names], which
// has all that is asked of most members in one cache line for each.
type Known struct {
	table  []knownMember // a power of two, at most half of it in use
	slots  []uint32      // the places of the names in the table
	names  Names
	noted  uint32 // the bits of an entry's meta that get its number; none if members are not numbered
	factor uint32
	shift  uint8
}

// A KnownMember is what is asked of the members with a name.
type KnownMember struct {
	Glance Glance
	Inside *Form // if it is a container; nil if its contents are not looked at
	Bit    uint8 // in the mask of the members that are there
}

// A knownMember is a KnownMember with its name, as a nameMark has it.
type knownMember struct {
	glance      Glance
	first, last uint64
	inside      *Form
	note        uint32 // the number of the name, from 1, as an entry's meta has it
	size        uint8  // in bytes; 255 of a name that is not compared here
	beyond      uint8  // the bits of first behind its end
	bit         uint8
	enters      KindSet
}

// NewKnown makes the table of at most MaxNote names, which has what is asked of each. With numbered set, the number of
// each member that has a name is noted on it, from 1.
func NewKnown(names Names, members []KnownMember, numbered bool) *Known {
	if len(names.slots) == 0 {
		return nil
	}
	k := &Known{names: names, factor: names.factor, shift: names.shift}
	if numbered {
		k.noted = noteMask
	}
	k.table, k.slots = make([]knownMember, len(names.slots)), make([]uint32, len(names.names))
	for at, place := range names.slots {
		if place == 0 {
			continue
		}
		name, member := &names.names[place-1], &members[place-1]
		m := knownMember{note: uint32(place) << noteShift, size: 255, bit: member.Bit, inside: member.Inside,
			glance: member.Glance}
		if name.size-1 < maxShort {
			m.first, m.last = name.first, name.last
			m.size, m.beyond = uint8(name.size), uint8(64-8*min(name.size, 8))
		}
		if m.inside != nil {
			m.enters = m.inside.Enters
		}
		k.table[at], k.slots[place-1] = m, uint32(at)
	}
	return k
}

// at is an entry of the table.
func (k *Known) at(slot uint32) *knownMember {
	return (*knownMember)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(k.table)),
		uintptr(slot)*unsafe.Sizeof(knownMember{})))
}

// find is Names.search for a member that is not compared in the table.
func (k *Known) find(d *Document, e *entry) *knownMember {
	if place := k.names.search(d, e); place >= 0 {
		return &k.table[k.slots[place]]
	}
	return nil
}

// A Visitor decides about what a Form does not.
type Visitor interface {
	// Value is asked of a member or item that is not right at a glance: which marks it has, and the bits
	// of the member if it is still there. place is the index of its name, -1 if the name is not known. The
	// document may be edited at the value and below it. The traversal ends if it is not ok.
	Value(of *Form, container, value Node, place int) (marks Marks, there uint64, ok bool)
	// End is asked whether a container is right, if all that is in it is.
	End(of *Form, container Node) bool
}

// Traverse goes through an object or list and all that is in it, and asks the visitor of what the form
// does not take. What is right gets the marks, and so does a container that has nothing in it that lacks
// them. The result is what the whole has got.
func Traverse(container Node, form *Form, marks Marks, visitor Visitor) Marks {
	t := traversal{d: container.d, visitor: visitor, passed: marks.bits()}
	got := t.container(form, container.i, container.d.tape[container.i].meta)
	if t.isOver {
		return 0
	}
	return marksOf(got)
}

type traversal struct {
	d       *Document
	visitor Visitor
	passed  uint32 // the bits of the marks that right values get
	isOver  bool
}

// container goes through the entry at, and returns the bits of its marks.
func (t *traversal) container(f *Form, at, meta uint32) (marks uint32) {
	switch {
	case meta&kindMask == uint32(Array):
		return t.values(f, f.List.Items, at)
	case f.Object.Known == nil:
		return t.values(f, f.Object.Values, at)
	}
	return t.members(f, at)
}

// members goes through an object whose members are known by their names.
func (t *traversal) members(f *Form, at uint32) (marks uint32) {
	var (
		d    = t.d
		k    = f.Object.Known
		tape = d.entries()
		seen uint64
		m    *knownMember
	)
	marks = t.passed
	for i := d.firstOf(tape, at); i != 0; {
		e := entryOf(tape, i)
		meta, size := e.meta, e.keyEnd-e.key
		if meta&(flagKeyEscaped|flagSide|flagRemoved) == 0 && size-1 < maxShort && int(e.key)+8 <= len(d.body) {
			key := unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.body)), e.key)
			first, slot := load64(key, 0), e.hash*k.factor>>(k.shift&31)
			for m = k.at(slot); uint32(m.size) != size || (first^m.first)<<(m.beyond&63) != 0 || size > 8 &&
				load64(key, int(size)-8) != m.last; m = k.at(slot) {
				if m.note == 0 {
					m = nil
					break
				}
				slot = (slot + 1) & uint32(len(k.table)-1)
			}
		} else if meta&flagRemoved != 0 {
			goto next
		} else {
			m = k.find(d, e)
		}
		switch {
		case m == nil:
			got, there := t.ask(f, at, i, -1)
			marks, seen = marks&got, seen|there
		case m.glance.takesText(e, meta) || meta&kindMask < uint32(Object) && m.takesScalar(d, e, meta):
			e.meta = meta | m.note&k.noted | t.passed // a member that has a number keeps it
			seen |= 1 << (m.bit & 63)
			goto next
		default:
			e.meta = meta | m.note&k.noted
			if m.enters.has(meta) {
				marks &= t.container(m.inside, i, meta)
				seen |= 1 << (m.bit & 63)
				break
			}
			got, there := t.ask(f, at, i, int(m.note>>noteShift)-1)
			marks, seen = marks&got, seen|there
		}
		if t.isOver {
			return 0
		}
		tape = d.entries() // which may have grown
		e = entryOf(tape, i)

	next:
		if i = e.next; int32(i) < 0 {
			break
		}
	}
	if seen&f.Object.Filled != f.Object.Filled {
		marks &^= flagComplete
	}
	c := entryOf(tape, at)
	if marks&flagSound != 0 && !(seen&f.Object.Required == f.Object.Required && f.Decides.has(c.meta) &&
		f.Object.Size.takes(c)) {
		return t.end(f, at, marks)
	}
	c.meta |= marks
	return marks
}

// takesScalar reports whether a scalar is right, whose glance it has failed as a text.
func (m *knownMember) takesScalar(d *Document, e *entry, meta uint32) bool {
	return meta&flagInteger != 0 && m.glance.takesInteger(d, e) || m.inside != nil && m.inside.takesText(d, e, meta)
}

// takesText reports whether a value is a right string by the form's own measure.
func (f *Form) takesText(d *Document, e *entry, meta uint32) bool {
	return meta&(kindMask|flagEscaped) == uint32(String) && f.Text != nil &&
		f.Text(viewString(d.source(e)[e.off+1:e.end-1]))
}

func (s *Size) takes(e *entry) bool { return e.count >= s.Least && e.count <= s.Most }

// values goes through a list, or an object whose members all have one form, which may be nil.
func (t *traversal) values(f, value *Form, at uint32) (marks uint32) {
	d := t.d
	tape := d.entries()
	marks = t.passed
	for i := d.firstOf(tape, at); i != 0; {
		e := entryOf(tape, i)
		switch meta := e.meta; {
		case meta&flagRemoved != 0:
		case value != nil && (value.Glance.takesText(e, meta) || meta&kindMask < uint32(Object) &&
			value.takesScalar(d, e, meta)):
			e.meta = meta | t.passed
		default:
			if value != nil && value.Enters.has(meta) {
				marks &= t.container(value, i, meta)
			} else {
				got, _ := t.ask(f, at, i, -1)
				marks &= got
			}
			if t.isOver {
				return 0
			}
			tape = d.entries()
			e = entryOf(tape, i)
		}
		if i = e.next; int32(i) < 0 {
			break
		}
	}
	c, size := entryOf(tape, at), &f.List.Size
	if c.meta&kindMask == uint32(Object) {
		size = &f.Object.Size
	}
	if marks&flagSound != 0 && !(f.Decides.has(c.meta) && size.takes(c)) {
		return t.end(f, at, marks)
	}
	c.meta |= marks
	return marks
}

// takesScalar is takesScalar of a member for a value of the form.
func (f *Form) takesScalar(d *Document, e *entry, meta uint32) bool {
	return meta&flagInteger != 0 && f.Glance.takesInteger(d, e) || f.takesText(d, e, meta)
}

// end asks the visitor about a container and marks it.
func (t *traversal) end(f *Form, at, marks uint32) uint32 {
	if !t.visitor.End(f, Node{t.d, at}) {
		marks &^= flagSound
	}
	t.d.tape[at].meta |= marks
	return marks
}

// ask asks the visitor about a value.
func (t *traversal) ask(f *Form, at, i uint32, place int) (marks uint32, there uint64) {
	got, there, ok := t.visitor.Value(f, Node{t.d, at}, Node{t.d, i}, place)
	t.isOver = t.isOver || !ok
	return got.bits(), there
}

// entries are the entries of the tape, until one is added.
func (d *Document) entries() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(d.tape)) }

// firstOf is chainFirst. Most containers are as they were parsed, and have something in them.
func (d *Document) firstOf(tape unsafe.Pointer, at uint32) uint32 {
	if e := entryOf(tape, at); e.meta&(flagHead|flagIndexed) == 0 && e.last != 0 {
		return at + 1
	}
	return d.childrenOf(at)
}

// entryOf is the entry i of a tape, which must be there.
func entryOf(tape unsafe.Pointer, i uint32) *entry {
	return (*entry)(unsafe.Add(tape, uintptr(i)*unsafe.Sizeof(entry{})))
}
