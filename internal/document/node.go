package document

import "strconv"

// Kind is the JSON type of a value.
type Kind uint8

// The kinds of values. Invalid is the kind of the zero Node.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Object
	Array
)

// String is the name of the kind in JSON Schema.
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "object", "array"}[k]
}

// WithArticle is the kind as a sentence says it: "an object", "a list", "null". A
// value that is not there counts as null.
func (k Kind) WithArticle() string {
	return [...]string{"null", "null", "a boolean", "a number", "a string", "an object", "a list"}[k]
}

// A Node is a value of a Document, as it is now. It follows its place: after
// Set or Replace it reads the new value there. The node of a removed value still
// reads what was there, but edits through it no longer reach the document. The
// zero Node is invalid: it reads as nothing, and edits ignore it.
type Node struct {
	d *Document
	i uint32
}

// Valid reports whether the node is a value of a document.
func (n Node) Valid() bool { return n.d != nil }

// Document is the document that the node belongs to, nil for the zero Node.
func (n Node) Document() *Document { return n.d }

// Index identifies a value of one document. It is small and dense, for use as an index of side
// tables.
func (n Node) Index() uint32 { return n.i }

// Node is the value with the index, which a node of the document returned.
func (d *Document) Node(index uint32) Node { return Node{d, index} }

// Offset returns the offset of the value in the text that was parsed, for a member the offset of
// its key; it is not ok if an edit brought the value.
func (n Node) Offset() (offset int, ok bool) {
	if n.d == nil {
		return 0, false
	}
	e := &n.d.tape[n.i]
	return int(e.start()), e.meta&flagSide == 0
}

// Kind is the type of the value.
func (n Node) Kind() Kind {
	if n.d == nil {
		return Invalid
	}
	return Kind(n.d.tape[n.i].meta & kindMask)
}

// Len is the number of members or items, 0 for other kinds.
func (n Node) Len() int {
	if n.Kind() < Object {
		return 0
	}
	return int(n.d.tape[n.i].count)
}

// Get finds the member with the key.
func (n Node) Get(key string) (Node, bool) {
	if n.Kind() != Object {
		return Node{}, false
	}
	if n.d.tape[n.i].meta&flagIndexed != 0 {
		return n.d.found(n.d.find(n.i, key, hashString(key)))
	}
	for k := n.d.chainFirst(n.i); k != 0; k = n.d.chainNext(k) {
		o := &n.d.tape[k]
		if (int(o.keyEnd-o.key) == len(key) || o.meta&flagKeyEscaped != 0) && o.meta&flagRemoved == 0 &&
			n.d.keyIs(o, key) {
			return Node{n.d, k}, true
		}
	}
	return Node{}, false
}

// found is the node of a member, 0 if there is none.
func (d *Document) found(i uint32) (Node, bool) {
	if i == 0 {
		return Node{}, false
	}
	return Node{d, i}, true
}

// Lookup is Get for a key whose hash was computed before.
func (n Node) Lookup(name Name) (Node, bool) {
	if n.d == nil {
		return Node{}, false
	}
	return n.d.found(n.d.step(n.i, &name))
}

// find returns the live member with the key, 0 without one.
func (d *Document) find(object uint32, key string, hash uint32) uint32 {
	e := &d.tape[object]
	if e.meta&flagIndexed != 0 {
		return d.findIndexed(e, key, hash)
	}
	for k := d.chainFirst(object); k != 0; k = d.chainNext(k) {
		o := &d.tape[k]
		if o.hash == hash && o.meta&flagRemoved == 0 && d.keyIs(o, key) {
			return k
		}
	}
	return 0
}

func (d *Document) keyIs(e *entry, key string) bool {
	raw := d.source(e)[e.key:e.keyEnd]
	if e.meta&flagKeyEscaped != 0 {
		return decodedIs(raw, key)
	}
	return string(raw) == key
}

// First is the first member or item, invalid without any.
func (n Node) First() Node {
	if n.Kind() < Object {
		return Node{}
	}
	return n.d.live(n.d.chainFirst(n.i))
}

// Next is the next member or item of the same parent, invalid after the last.
func (n Node) Next() Node {
	if n.d == nil || n.i == 0 {
		return Node{}
	}
	return n.d.live(n.d.chainNext(n.i))
}

// live is the node of i or of the first one after it that is not removed.
func (d *Document) live(i uint32) Node {
	for i != 0 && d.tape[i].meta&flagRemoved != 0 {
		i = d.chainNext(i)
	}
	if i == 0 {
		return Node{}
	}
	return Node{d, i}
}

// At is the item at the position, from 0; it takes time in proportion to it.
func (n Node) At(position int) (Node, bool) {
	if n.Kind() != Array || position < 0 || position >= n.Len() {
		return Node{}, false
	}
	item := n.First()
	for range position {
		item = item.Next()
	}
	return item, true
}

// Parent is the object or array that the value stands in, invalid at the root.
func (n Node) Parent() Node {
	if n.d == nil || n.i == 0 {
		return Node{}
	}
	return Node{n.d, n.d.tape[n.i].parent}
}

// Key is the decoded name of a member, "" for values that are not members. It shares the document's
// memory unless it has escapes.
func (n Node) Key() string {
	if n.d == nil {
		return ""
	}
	return n.d.keyOf(&n.d.tape[n.i])
}

func (d *Document) keyOf(e *entry) string {
	if e.meta&flagMember == 0 {
		return ""
	}
	raw := d.source(e)[e.key:e.keyEnd]
	if e.meta&flagKeyEscaped != 0 {
		return string(appendDecoded(nil, raw))
	}
	return viewString(raw)
}

// raw is the value's own text, without edits below it.
func (n Node) raw() []byte {
	e := &n.d.tape[n.i]
	return n.d.source(e)[e.off:e.end:e.end]
}

// quoted returns the bytes between the quotation marks of a string.
func (n Node) quoted() []byte {
	raw := n.raw()
	return raw[1 : len(raw)-1]
}

// Str is the decoded value of a string, "" for other kinds. It shares the
// document's memory unless it has escapes.
func (n Node) Str() string {
	if text, ok := n.Text(); ok {
		return text
	}
	if n.Kind() != String {
		return ""
	}
	return string(appendDecoded(nil, n.quoted()))
}

// AppendStr appends the decoded value of a string to dst.
func (n Node) AppendStr(dst []byte) []byte {
	if n.Kind() != String {
		return dst
	}
	if n.d.tape[n.i].meta&flagEscaped != 0 {
		return appendDecoded(dst, n.quoted())
	}
	return append(dst, n.quoted()...)
}

// Is reports whether the value is the string s, without decoding it.
func (n Node) Is(s string) bool {
	if n.Kind() != String {
		return false
	}
	if n.d.tape[n.i].meta&flagEscaped != 0 {
		return decodedIs(n.quoted(), s)
	}
	return string(n.quoted()) == s
}

// Escaped reports whether Str has to decode and therefore to allocate.
func (n Node) Escaped() bool {
	return n.Kind() == String && n.d.tape[n.i].meta&flagEscaped != 0
}

// HasNUL reports whether the value is a string with the character U+0000.
func (n Node) HasNUL() bool {
	return n.Kind() == String && n.d.tape[n.i].meta&flagNUL != 0
}

// Bool is the value of a boolean, false for other kinds.
func (n Node) Bool() bool {
	return n.Kind() == Bool && n.raw()[0] == 't'
}

// Int64 is the value of a number if that is exactly an integer within int64,
// however it is spelled: 1.0 and 1e0 are 1, and -0 is 0.
func (n Node) Int64() (int64, bool) {
	if n.Kind() != Number {
		return 0, false
	}
	if n.d.tape[n.i].meta&flagInteger != 0 {
		return parseInt(n.raw())
	}
	return integerValue(n.raw())
}

// Float64 is the double nearest to the value of a number.
func (n Node) Float64() (float64, bool) {
	if n.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(viewString(n.raw()), 64)
	return f, err == nil
}

// IsInteger reports whether the value is a number spelled as an integer, without
// fraction and exponent, of any size.
func (n Node) IsInteger() bool {
	return n.Kind() == Number && n.d.tape[n.i].meta&flagInteger != 0
}
