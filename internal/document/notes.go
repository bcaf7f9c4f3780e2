package document

// A walk over a document may leave notes for the walks after it: a number on a
// value, and a mark that everything in the value is as it should be. An edit
// takes away the marks of all values around it; numbers say something of a
// value's place and stay while it has that place.

// A Noter tells the notes of different authors apart. A document has notes of
// one author at a time.
type Noter struct {
	_ byte // so that no two have the same address
}

// The highest bits of an entry's meta are the number.
const noteShift = 16

// TakeNotes lets the author write on the values of the document, and forgets
// what another one wrote.
func (d *Document) TakeNotes(author *Noter) {
	if d.noter == author {
		return
	}
	if d.noter != nil {
		for i := range d.tape {
			d.tape[i].meta &= (1<<noteShift - 1) &^ flagMarked
		}
	}
	d.noter = author
}

// NotedBy tells whether the notes of the document are the author's.
func (d *Document) NotedBy(author *Noter) bool { return d != nil && d.noter == author && author != nil }

// SetNote writes a number up to 65535 on the value, of which 0 is none.
func (n Node) SetNote(note int) {
	e := &n.d.tape[n.i]
	e.meta = e.meta&(1<<noteShift-1) | uint32(note)<<noteShift
}

// Note is the number that the author wrote on the value, 0 if there is none.
func (n Node) Note(author *Noter) int {
	if n.d == nil || n.d.noter != author {
		return 0
	}
	return int(n.d.tape[n.i].meta >> noteShift)
}

// Mark notes that everything in the value is as it should be.
func (n Node) Mark() { n.d.tape[n.i].meta |= flagMarked }

// Marked tells whether the value was marked, and nothing in it edited since.
// Whose mark it is [Document.NotedBy] tells.
func (n Node) Marked() bool { return n.d.tape[n.i].meta&flagMarked != 0 }
