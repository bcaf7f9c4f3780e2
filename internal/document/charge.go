package document

import (
	"slices"
	"unsafe"
)

// Memory grants the memory that documents take, if it is bounded, and receives what they give back.
// If it has a method Fail, that is called when a document fails for lack of memory; see
// [Document.Err].
type Memory interface {
	// Grow asks for so many bytes more, and reports whether they may be taken.
	Grow(bytes int) bool
	Shrink(bytes int)
}

// ErrNoMemory is the error of a document for an edit of which memory was refused, see [Document.Err].
var ErrNoMemory error = &Error{Code: NoMemory, Msg: msgNoMemory}

const (
	msgNoMemory = "there is no memory for the document"

	entryBytes = int(unsafe.Sizeof(entry{}))
	indexBytes = 4
)

// Memory grants what the document takes; nil if that is not bounded.
func (d *Document) Memory() Memory { return d.memory }

// charge asks for what the document holds beyond what it asked for before. Memory that came from the pool counts as far
// as it is in use.
func (d *Document) charge() bool {
	if d.memory == nil {
		return true
	}
	size := len(d.tape)*entryBytes + len(d.index)*indexBytes + len(d.side) + len(d.own)
	return size <= d.charged || d.take(size-d.charged)
}

func (d *Document) take(bytes int) bool {
	if !d.memory.Grow(bytes) {
		return false
	}
	d.charged += bytes
	return true
}

// giveBack gives back all that was asked for.
func (d *Document) giveBack() {
	if d.memory != nil {
		d.memory.Shrink(d.charged)
		d.memory, d.charged = nil, 0
	}
}

// extend makes room for n more elements of the given size behind s, which is the document's. The old memory is held
// until the new one is filled. It returns nil if the memory is refused.
func extend[T any](d *Document, s []T, n, size int) []T {
	if d.memory == nil {
		return slices.Grow(s, n)
	}
	// What is in use is charged already, if not by its capacity.
	want := (len(s) + n) * size
	if !d.memory.Grow(want) {
		return nil
	}
	old := cap(s)
	s = slices.Grow(s, n)
	extra := (cap(s) - old) * size
	d.charged += extra
	if extra > want {
		// The allocator rounds up.
		d.charged -= extra - want
	} else {
		d.memory.Shrink(want - extra)
	}
	return s
}

// Err returns ErrNoMemory if the memory for an edit was refused, else nil. The document has failed
// then: it reads as null, so that no part of the edit is ever seen, and later edits do nothing.
// Code that sends its text, or judges by it, must check. A nil document has no error.
func (d *Document) Err() error {
	if d == nil || !d.failed {
		return nil
	}
	return ErrNoMemory
}

var nullText = []byte("null")

// fail makes every value of the document null. Nodes and cursors stay usable: each is at a value of
// the document, which has no next one.
func (d *Document) fail() {
	if told, is := d.memory.(interface{ Fail() }); is {
		told.Fail()
	}
	d.failed, d.edited = true, true
	d.revision++
	d.body = nullText
	for i := range d.tape {
		d.tape[i] = entry{end: uint32(len(nullText)), meta: uint32(Null)}
	}
}

// roomAside makes room for n more bytes in the side buffer. Without memory the document fails.
func (d *Document) roomAside(n int) bool {
	if n <= cap(d.side)-len(d.side) {
		return true
	}
	side := extend(d, d.side, max(n, len(d.side)/4), 1)
	if side == nil {
		d.fail()
		return false
	}
	d.side = side
	return true
}

// makeOwn makes room for n bytes of a clone's body, which is empty.
func (d *Document) makeOwn(n int) bool {
	if n <= cap(d.own) {
		return true
	}
	own := extend(d, d.own, n, 1)
	if own == nil {
		return false
	}
	d.own = own
	return true
}

// extent is about how many bytes the value's text is long, and hardly ever less.
func (n Node) extent() int {
	e := &n.d.tape[n.i]
	if e.meta&flagDirty == 0 {
		return int(e.end - e.off)
	}
	return n.d.Extent()
}

// chargeCopy asks for what a copy of the tape and the index takes, which an edit that may be undone needs. Without
// memory the document fails.
func (d *Document) chargeCopy() (size int, granted bool) {
	if d.memory == nil {
		return 0, true
	}
	size = len(d.tape)*entryBytes + len(d.index)*indexBytes
	if !d.memory.Grow(size) {
		d.fail()
		return 0, false
	}
	return size, true
}

func (d *Document) giveBackCopy(size int) {
	if d.memory != nil {
		d.memory.Shrink(size)
	}
}
