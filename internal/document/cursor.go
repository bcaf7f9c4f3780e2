package document

// A Cursor goes through the members of an object or the items of a list as
// Node.First and Node.Next do, and reads what every walk asks of each of them
// with fewer looks at the tape. It sees edits made by way of other nodes once it
// has moved on.
type Cursor struct {
	d *Document
	e *entry // nil behind the last one
	i uint32
}

// Cursor is the Cursor at the value.
func (n Node) Cursor() Cursor {
	if n.d == nil {
		return Cursor{}
	}
	return Cursor{n.d, &n.d.tape[n.i], n.i}
}

// Children is the Cursor at the first member or item; at its end for a value
// that has none.
func (n Node) Children() Cursor {
	c := Cursor{d: n.d}
	if n.d != nil {
		c.to(n.d.childrenOf(n.i))
	}
	return c
}

// Valid reports whether the Cursor is at a member or item.
func (c *Cursor) Valid() bool { return c.e != nil }

// Next moves on.
func (c *Cursor) Next() {
	next := c.e.next
	if int32(next) <= 0 {
		c.e = nil
		return
	}
	c.to(next)
}

// to moves to the first entry from i on that is not removed.
func (c *Cursor) to(i uint32) {
	for i != 0 {
		e := &c.d.tape[i]
		if e.meta&flagRemoved == 0 {
			c.e, c.i = e, i
			return
		}
		i = c.d.chainNext(i)
	}
	c.e = nil
}

// Node is the member or item.
func (c *Cursor) Node() Node { return Node{c.d, c.i} }

// Find is Names.Member.
func (c *Cursor) Find(names *Names) int { return names.find(c.d, c.e) }

// Kind is Node.Kind.
func (c *Cursor) Kind() Kind { return Kind(c.e.meta & kindMask) }

// Len is Node.Len.
func (c *Cursor) Len() int {
	if c.Kind() < Object {
		return 0
	}
	return int(c.e.count)
}

// Children is Node.Children.
func (c *Cursor) Children() Cursor {
	switch {
	case c.Kind() < Object:
		return Cursor{}
	case c.e.meta&flagHead == 0 && c.e.last != 0: // what the parser read follows, and is looked at in place
		inside := Cursor{d: c.d}
		inside.to(c.i + 1)
		return inside
	}
	return c.Node().Children()
}

// Text is the value of a string without escapes, which is found as it stands;
// not ok for everything else.
func (c *Cursor) Text() (s string, ok bool) {
	if c.e.meta&(kindMask|flagEscaped) != uint32(String) {
		return "", false
	}
	return viewString(c.d.source(c.e)[c.e.off+1 : c.e.end-1]), true
}

// Key is Node.Key.
func (c *Cursor) Key() string { return c.d.keyOf(c.e) }

// Marked is Node.Marked.
func (c *Cursor) Marked(marks Marks) bool { return c.e.meta&marks.bits() == marks.bits() }

// Mark is Node.Mark.
func (c *Cursor) Mark(marks Marks) { c.e.meta |= marks.bits() }

// SetNote is Node.SetNote.
func (c *Cursor) SetNote(note int) {
	c.e.meta = c.e.meta&^noteMask | uint32(note)<<noteShift
}

// Note is Node.Note.
func (c *Cursor) Note(author *Noter) int {
	if c.d.noter != author {
		return 0
	}
	return int(c.e.meta >> noteShift)
}
