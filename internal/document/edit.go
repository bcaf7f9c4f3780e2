package document

import (
	"strings"
	"unicode/utf8"
)

// Set gives the object's member with the key the value raw, or adds the member
// at the object's end, and returns the value's node. Raw must be one valid JSON
// value, which Set copies; anything else is a mistake of the program and panics.
// On a node that is not an object Set does nothing and returns the zero Node.
func (d *Document) Set(object Node, key string, raw []byte) Node {
	if !d.owns(object) || object.Kind() != Object {
		return Node{}
	}
	if !utf8.ValidString(key) {
		key = strings.ToValidUTF8(key, "\uFFFD")
	}
	hash := hashString(key)
	if i := d.find(object.i, key, hash); i != 0 {
		return d.Replace(Node{d, i}, raw)
	}
	return d.add(object, key, hash, raw)
}

// SetString is Set with a string value.
func (d *Document) SetString(object Node, key, value string) Node {
	var buf [256]byte
	return d.Set(object, key, AppendString(buf[:0], value))
}

// Append adds an item at the list's end and returns its node. Raw is as for Set.
// On a node that is not an array Append does nothing and returns the zero Node.
func (d *Document) Append(list Node, raw []byte) Node {
	if !d.owns(list) || list.Kind() != Array {
		return Node{}
	}
	i := d.newEntry(list.i)
	if i == 0 {
		return Node{}
	}
	d.link(list.i, i)
	d.touch(list.i)
	return d.write(i, raw)
}

// InsertBefore adds an item to a list before the item at and returns its node.
// Raw is as for Set. If at is no item of a list InsertBefore does nothing and
// returns the zero Node.
func (d *Document) InsertBefore(at Node, raw []byte) Node {
	parent := at.Parent()
	if !d.owns(at) || parent.Kind() != Array || at.removed() {
		return Node{}
	}
	before := uint32(0)
	for k := d.chainFirst(parent.i); k != at.i; k = d.chainNext(k) {
		if k == 0 {
			return Node{}
		}
		before = k
	}
	i := d.newEntry(parent.i)
	if i == 0 {
		return Node{}
	}
	list := &d.tape[parent.i]
	d.tape[i].next = at.i
	if before == 0 {
		list.meta |= flagHead
		d.tape[d.lastOf(list)].next = wrap | i
	} else {
		d.tape[before].next = i
	}
	list.count++
	d.touch(parent.i)
	return d.write(i, raw)
}

// Replace gives the place of at a new value and returns its node, which is at.
// Raw is as for Set. The root can be replaced too.
func (d *Document) Replace(at Node, raw []byte) Node {
	if !d.owns(at) || d.failed || !d.replace(at.i) {
		return Node{}
	}
	return d.write(at.i, raw)
}

// replace prepares the entry i for a new value. It returns false if the document has failed.
func (d *Document) replace(i uint32) bool {
	for k := d.childrenOf(i); k != 0; k = d.chainNext(k) {
		d.tape[k].meta |= flagRemoved
	}
	if i == 0 {
		d.rootOff, d.rootEnd = d.rootExtent()
		d.tape[0].meta = flagInserted | flagSide
		d.edited = true
		d.revision++
		return true
	}
	e := &d.tape[i]
	member := e.meta&flagMember != 0
	if e.meta&flagInserted == 0 {
		// The text that the value had within its parent's is remembered in an
		// entry of its own, next in the chain.
		old := *e
		old.meta |= flagRemoved
		ghost := uint32(len(d.tape))
		if !d.addEntry(old) {
			return false
		}
		e = &d.tape[i]
		e.next = ghost
		parent := &d.tape[e.parent]
		if d.lastOf(parent) == i {
			d.setLast(parent, ghost)
		}
		e.meta |= flagInserted | flagReplaced
	}
	if member {
		src := d.source(e)
		prefix := src[e.key-1 : e.off]
		size := e.keyEnd - e.key
		if !d.roomAside(len(prefix)) {
			return false
		}
		from := uint32(len(d.side))
		d.side = append(d.side, prefix...)
		e.key, e.keyEnd = from+1, from+1+size
	}
	e.meta = e.meta&placeMask | flagSide
	d.touch(e.parent)
	return true
}

// Remove takes the value out of its object or array. The root cannot be removed.
func (d *Document) Remove(at Node) {
	if !d.owns(at) || d.failed || at.i == 0 || at.removed() {
		return
	}
	e := &d.tape[at.i]
	e.meta |= flagRemoved
	d.tape[e.parent].count--
	d.touch(e.parent)
}

func (d *Document) owns(n Node) bool { return n.d == d && d != nil }

func (n Node) removed() bool { return n.d.tape[n.i].meta&flagRemoved != 0 }

// newEntry adds an entry for an inserted value to the tape. It returns 0 if the document has failed.
func (d *Document) newEntry(parent uint32) uint32 {
	i := uint32(len(d.tape))
	if !d.addEntry(entry{parent: parent, meta: flagInserted | flagSide}) {
		return 0
	}
	return i
}

// addEntry adds an entry to the tape. Without memory the document fails.
func (d *Document) addEntry(e entry) bool {
	if len(d.tape) == cap(d.tape) {
		tape := extend(d, d.tape, max(len(d.tape)/4, firstEntries), entryBytes)
		if tape == nil {
			d.fail()
			return false
		}
		d.tape = tape
	}
	d.tape = append(d.tape, e)
	return true
}

// link makes i the last child of a container.
func (d *Document) link(container, i uint32) {
	c := &d.tape[container]
	if last := d.lastOf(c); last == 0 {
		c.meta |= flagHead
		d.tape[i].next = wrap | i
	} else {
		d.tape[i].next = d.tape[last].next
		d.tape[last].next = i
	}
	d.setLast(c, i)
	c.count++
	if d.tape[i].meta&flagMember != 0 {
		d.indexAdded(container, i)
		d.alike = d.alike || d.isAlike(container, i)
	}
}

// isAlike reports whether the key of the last member i may differ from another one of its object in
// case alone, if alike is not set: then all keys are ASCII without escapes, because others set it.
func (d *Document) isAlike(object, i uint32) bool {
	added := &d.tape[i]
	if d.tape[object].count > pairsUpTo || added.meta&flagKeyEscaped != 0 {
		return true // a walk over the whole is cheaper than a look at all of them for each that is added
	}
	key := viewString(d.source(added)[added.key:added.keyEnd])
	if !isASCII(key) {
		return true // perhaps
	}
	tape, size := d.entries(), uint32(len(key))
	if size == 0 {
		return false
	}
	for k := d.firstOf(tape, object); k != i; {
		e := entryOf(tape, k)
		if e.keyEnd-e.key == size {
			// Most keys of one size differ in their first character, and a letter from its variant in one bit.
			if other := d.source(e)[e.key:e.keyEnd]; (other[0]^key[0])&^0x20 == 0 &&
				strings.EqualFold(viewString(other), key) {
				return true
			}
		}
		k = e.next
	}
	return false
}

// write parses raw into the side buffer as the value of the entry i, and returns its node. That is
// the zero Node if the document has failed.
func (d *Document) write(i uint32, raw []byte) Node {
	from := len(d.side)
	if !d.roomAside(len(raw)) {
		return Node{}
	}
	d.side = append(d.side, raw...)
	if !d.scanSide(from, i) {
		return Node{}
	}
	return Node{d, i}
}

// scanSide parses what the side buffer ends with as the value of the entry i. Without memory the
// document fails.
func (d *Document) scanSide(from int, i uint32) bool {
	switch err := d.scan(d.side, from, i, flagSide, unlimited()); {
	case err == nil:
		return true
	case isNoMemory(err):
		d.fail()
		return false
	default:
		panic("document: an edit with a value that is not JSON: " + err.Error())
	}
}

// touch notes that something in the container has been edited, so that nothing
// which was found out about it need still be true.
func (d *Document) touch(container uint32) {
	if d.noter != nil {
		for i := container; ; i = d.tape[i].parent {
			d.tape[i].meta &^= flagMarks
			if i == 0 {
				break
			}
		}
	}
	d.dirty(container)
}

// dirty notes that the text of the container is no longer as it was.
func (d *Document) dirty(container uint32) {
	d.edited = true
	d.revision++
	for {
		e := &d.tape[container]
		if e.meta&flagDirty != 0 {
			return
		}
		e.meta |= flagDirty
		if container == 0 {
			return
		}
		container = e.parent
	}
}
