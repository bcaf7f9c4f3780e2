package document

// An entry is one value on the tape. Which fields are set depends on the kind and the place of the
// value; the others hold what the last document left there, so that a scalar in an array costs no
// more writes than it needs.
type entry struct {
	off, end    uint32 // the value's bytes in its source
	key, keyEnd uint32 // a member's key between the quotes, in the same source
	hash        uint32 // of a member's decoded key
	parent      uint32
	next        uint32 // next sibling; 0 or wrap|head after the last one
	last        uint32 // container: last child, 0 without any; in an indexed object a place in the index
	count       uint32 // container: live children
	meta        uint32
}

// Kind is the lowest three bits of meta, the highest fifteen are a note (see
// notes.go), and the rest are flags.
const (
	kindMask     uint32 = 7
	flagSound    uint32 = 1 << 3  // see Marks
	flagComplete uint32 = 1 << 16 // see Marks

	flagMember     uint32 = 1 << (1 + iota) // stands in an object, has a key
	flagKeyEscaped                          // the key has escapes
	flagEscaped                             // the string has escapes
	flagNUL                                 // the string has '\u0000'
	flagInteger                             // the number has neither fraction nor exponent
	flagSide                                // the bytes are in the side buffer
	flagInserted                            // stands outside the text of its parent
	flagReplaced                            // inserted in the place of the entry that follows in the chain
	flagRemoved                             // no longer part of the document
	flagDirty                               // container: something below has been edited
	flagHead                                // container: the first child is not the next entry
	flagIndexed                             // object: members are in the index

	// placeMask selects the bits that an entry keeps when its value is replaced.
	placeMask = flagMember | flagKeyEscaped | flagInserted | flagReplaced | flagRemoved
)

// wrap marks the next of a last child that leads back to the first one.
const wrap uint32 = 1 << 31

// source is the buffer that the entry's offsets point into.
func (d *Document) source(e *entry) []byte {
	if e.meta&flagSide != 0 {
		return d.side
	}
	return d.body
}

// chainFirst is the first child in the chain, removed ones included; 0 if there is none.
func (d *Document) chainFirst(i uint32) uint32 {
	e := &d.tape[i]
	if e.meta&flagHead != 0 {
		return d.tape[d.lastOf(e)].next &^ wrap
	}
	if e.last == 0 && e.meta&flagIndexed == 0 {
		return 0
	}
	return i + 1
}

// chainNext is the next sibling in the chain, removed ones included; 0 if there is none.
func (d *Document) chainNext(i uint32) uint32 {
	next := d.tape[i].next
	if int32(next) < 0 {
		return 0
	}
	return next
}

// lastOf is the last child in the chain of a container.
func (d *Document) lastOf(e *entry) uint32 {
	if e.meta&flagIndexed != 0 {
		return d.index[e.last]
	}
	return e.last
}

func (d *Document) setLast(e *entry, last uint32) {
	if e.meta&flagIndexed != 0 {
		d.index[e.last] = last
		return
	}
	e.last = last
}

// start is the offset of the text of an entry, a member's key included.
func (e *entry) start() uint32 {
	if e.meta&flagMember != 0 {
		return e.key - 1
	}
	return e.off
}

// rootExtent is the extent of the parsed root in the body.
func (d *Document) rootExtent() (off, end uint32) {
	if root := &d.tape[0]; root.meta&flagInserted == 0 {
		return root.off, root.end
	}
	return d.rootOff, d.rootEnd
}

// childrenOf is chainFirst for an entry of any kind.
func (d *Document) childrenOf(i uint32) uint32 {
	if Kind(d.tape[i].meta&kindMask) < Object {
		return 0
	}
	return d.chainFirst(i)
}
