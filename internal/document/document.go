// Package document reads JSON strictly, once, onto a flat tape, and lays
// edits over it.
//
// A Document keeps the bytes it was parsed from. Every value is one fixed-size entry of the tape
// that says where its bytes are; strings, numbers and keys are read from those bytes when they are
// asked for. An edit adds entries whose bytes are in a side buffer, and printing copies whole runs
// of untouched bytes, so that key order, number spelling, escapes and spacing of everything that
// was not edited come out as they came in.
//
// # What is refused
//
// RFC 8259 is read to the letter: no byte order mark, no comments, no trailing
// commas or data, no leading zeros. Beyond it, whatever two parsers could read
// in two ways is refused: duplicate keys at any depth (escapes considered),
// invalid UTF-8, escapes of lone surrogates, '\u0000' in keys, numbers so large
// that a double takes them for an infinity, and exponents of ten digits or more.
//
// # Numbers
//
// A number is read by its value, and its spelling is kept: [Node.Int64] answers
// for every number whose exact value is an integer within int64, so 1.0 and 1e0
// read as 1 and -0 as 0, and [Node.IsInteger] reports whether the number was
// spelled as an integer, without fraction or exponent (1.0 and 1e0 are not, -0
// is). No number is ever rounded by being read and printed.
//
// # Lifetimes
//
// Documents are pooled. What a Document hands out (nodes, the strings of [Node.Key] and [Node.Str],
// the bytes of [Node.Raw]) is valid until [Document.Release] and shares memory with the body given
// to [Parse]; code that keeps a string for longer must clone it. Any number of goroutines may read
// a Document at once as long as none edits or releases it.
package document

import (
	"math"
	"sync"
)

// Defaults of [Limits].
const (
	DefaultBytes = 3 << 20
	DefaultDepth = 64
	DefaultNodes = 1 << 20
)

// maxBytes keeps every offset within an int32.
const maxBytes = math.MaxInt32 - 64

// Limits bound what Parse accepts. The zero value of a field means its default.
type Limits struct {
	Bytes int // size of the body in bytes
	Depth int // objects and arrays open at once; '[[]]' has depth 2
	Nodes int // values of any kind, containers included

	// Memory is asked for what the document takes, its edits included; nil bounds nothing.
	Memory Memory

	// Repeated, if set, is given the offsets of two keys of one object that are the same. The
	// second would otherwise be an error. It may be given a pair more than once. Of a document with
	// such keys nothing but walking over its members is defined.
	Repeated func(first, again int)

	// Outline, if set, has the reader pass over what is not in it.
	Outline *Outline

	open    bool // more text may follow the value
	trusted bool // the gateway made the text itself: keys may have '\u0000'
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Nodes <= 0 {
		l.Nodes = DefaultNodes
	}
	l.Bytes = min(l.Bytes, maxBytes)
	l.Nodes = min(l.Nodes, math.MaxInt32)
	return l
}

// unlimited returns the limits of text that the gateway made itself.
func unlimited() Limits {
	return Limits{Bytes: maxBytes, Depth: math.MaxInt32, Nodes: math.MaxInt32, trusted: true}
}

// A Document is one JSON text, parsed, with the edits made since.
type Document struct {
	body   []byte   // what was parsed; never written to
	side   []byte   // the bytes of inserted members and values
	tape   []entry  // tape[0] is the root
	index  []uint32 // hash tables of large objects, see index.go
	own    []byte   // a clone's body, kept for the next clone
	noter  *Noter   // whose notes are on the tape
	edited bool
	failed bool  // see Err
	alike  bool  // keys of one object may differ in case alone; if not set, none do
	idle   uint8 // how many texts in a row needed little of the tape

	memory  Memory // grants what the document takes; nil if that is not bounded
	charged int    // how much of it was granted

	revision uint64 // how often the document was edited, in all of its lives

	rootOff, rootEnd uint32 // the parsed root in the body, once it has been replaced

	skipper skipper // for an Outline
}

// What a pooled Document may keep whatever it was last used for. Up to keepLarge
// times as many bytes, and keepLongest times as many entries, is kept while texts are large enough to need it: after
// keepIdle small texts in a row the memory goes to the garbage collector, so that one
// large request does not pin it.
const (
	keepEntries = 16 << 10
	keepBytes   = 128 << 10
	keepIndex   = 32 << 10
	keepLarge   = 16
	keepLongest = 4
	keepIdle    = 8

	firstEntries = 160 // for an object of about 2 KB
)

var pool = sync.Pool{New: func() any {
	return &Document{side: make([]byte, 0, 512)}
}}

// Parse reads body, which is not copied and must stay unchanged until Release.
// The error is an [*Error].
func Parse(body []byte, limits Limits) (*Document, error) {
	d := pool.Get().(*Document)
	if err := d.parse(body, limits.withDefaults()); err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// ParseNext reads the value that body begins with, whatever follows it, and returns how many bytes
// it read. See [Parse].
func ParseNext(body []byte, limits Limits) (d *Document, read int, err error) {
	limits.open = true
	if d, err = Parse(body, limits); err != nil {
		return nil, 0, err
	}
	return d, int(d.tape[0].end), nil
}

func (d *Document) parse(body []byte, limits Limits) error {
	if len(body) > limits.Bytes {
		return &Error{Offset: limits.Bytes, Code: TooLarge, Msg: msgTooLarge(limits.Bytes)}
	}
	d.body = body
	if limits.Memory != nil {
		d.memory = limits.Memory
	}
	if d.tape == nil {
		d.tape = make([]entry, 0, firstEntries)
	}
	d.tape = append(d.tape[:0], entry{})
	if limits.Outline != nil {
		d.skipper.forget()
		if d.scan(body, 0, 0, 0, limits) == nil {
			d.alike = true // perhaps: not all keys were read
			return nil
		}
		limits.Outline = nil
		d.tape, d.index, d.alike = append(d.tape[:0], entry{}), d.index[:0], false
	}
	return d.scan(body, 0, 0, 0, limits)
}

// Release gives the Document's memory back for reuse. Nothing that came from
// the Document may be used after it.
func (d *Document) Release() {
	if d == nil {
		return
	}
	d.giveBack()
	d.reset()
	pool.Put(d)
}

// reset forgets the text, and keeps the memory for the next one.
func (d *Document) reset() {
	d.body, d.noter = nil, nil
	d.edited, d.failed, d.alike = false, false, false
	d.revision++
	d.rootOff, d.rootEnd = 0, 0
	large := keepLarge
	if len(d.tape) >= cap(d.tape)/4 {
		d.idle = 0
	} else if d.idle++; d.idle >= keepIdle {
		d.idle, large = 0, 1
	}
	d.side = recycle(d.side, large*keepBytes)
	d.own = recycle(d.own, large*keepBytes)
	d.tape = recycle(d.tape, min(large, keepLongest)*keepEntries)
	d.index = recycle(d.index, large*keepIndex)
}

func recycle[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}

// Root is the document's value.
func (d *Document) Root() Node { return Node{d: d} }

// Edited reports whether any edit was made since the document was parsed.
func (d *Document) Edited() bool { return d.edited }

// Revision differs whenever the document has been edited or reused in between: while it is the same, a path leads to
// the same value.
func (d *Document) Revision() uint64 { return d.revision }

// Clone copies the document as it is now, edits included and white space around
// it left out, into a Document of its own, which shares nothing with d.
func (d *Document) Clone() *Document { return d.Root().Clone() }

// Clone copies the value as it is now into a Document of its own, which shares with the node's only
// the Memory. It returns nil for an invalid node. A clone of a document that has failed, or for
// which the memory is refused, has failed too; see [Document.Err].
func (n Node) Clone() *Document {
	if !n.Valid() {
		return nil
	}
	c := pool.Get().(*Document)
	c.memory = n.d.memory
	if n.i == 0 && n.d.isAsParsed() {
		c.copy(n.d)
		return c
	}
	if c.own = c.own[:0]; n.d.failed || !c.makeOwn(n.extent()) {
		c.tape = append(c.tape[:0], entry{})
		c.fail()
		return c
	}
	c.own = n.AppendRaw(c.own)
	switch err := c.parse(c.own, unlimited()); {
	case isNoMemory(err):
		c.fail()
	case err != nil:
		panic("document: cloning printed what cannot be parsed: " + err.Error())
	}
	return c
}

// isAsParsed reports whether the document is its body, without white space around it.
func (d *Document) isAsParsed() bool {
	root := &d.tape[0]
	return !d.edited && !d.failed && root.off == 0 && int(root.end) == len(d.body)
}

// copy makes the document, which is empty, a copy of one that is as it was parsed: what a parse of its text would make,
// without notes.
func (d *Document) copy(of *Document) {
	size := len(of.body) + len(of.tape)*entryBytes + len(of.index)*indexBytes
	if d.memory != nil && !d.take(size) {
		d.tape = append(d.tape[:0], entry{})
		d.fail()
		return
	}
	d.own = append(d.own[:0], of.body...)
	d.body, d.alike = d.own, of.alike
	d.tape, d.index = append(d.tape[:0], of.tape...), append(d.index[:0], of.index...)
	if of.noter != nil {
		d.forgetNotes()
	}
}
