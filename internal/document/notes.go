package document

// A walk over a document may leave notes for the walks after it: a number on a
// value, and marks that say something of everything in the value. An edit takes
// away the marks of all values around it; numbers say something of a value's
// place and stay while it has that place.

// Marks are facts about a value and everything in it.
type Marks uint8

// The marks that a value may have.
const (
	Sound    Marks = 1 << iota // it is as it should be
	Complete                   // nothing is left to be filled in
)

// A Noter identifies the author of notes. A document has notes of one author at a time.
type Noter struct {
	_ byte // so that no two have the same address
}

// The highest bits of an entry's meta are the number, up to MaxNote.
const (
	noteShift = 17
	MaxNote   = 1<<(32-noteShift) - 1

	noteMask uint32 = MaxNote << noteShift
)

const flagMarks = flagSound | flagComplete

// bits are the marks as an entry's meta has them.
func (m Marks) bits() uint32 {
	return uint32(m&Sound)*flagSound | uint32(m&Complete)/uint32(Complete)*flagComplete
}

// marksOf are the marks that an entry's meta has.
func marksOf(meta uint32) (marks Marks) {
	if meta&flagSound != 0 {
		marks = Sound
	}
	if meta&flagComplete != 0 {
		marks |= Complete
	}
	return marks
}

// TakeNotes lets the author write on the values of the document, and forgets
// what another one wrote.
func (d *Document) TakeNotes(author *Noter) {
	if d.noter == author {
		return
	}
	if d.noter != nil {
		d.forgetNotes()
	}
	d.noter = author
}

// forgetNotes takes all notes off the tape.
func (d *Document) forgetNotes() {
	for i := range d.tape {
		d.tape[i].meta &^= noteMask | flagMarks
	}
}

// NotedBy reports whether the notes of the document are the author's.
func (d *Document) NotedBy(author *Noter) bool { return d != nil && d.noter == author && author != nil }

// SetNote writes a number up to MaxNote on the value; 0 takes it away.
func (n Node) SetNote(note int) {
	e := &n.d.tape[n.i]
	e.meta = e.meta&^noteMask | uint32(note)<<noteShift
}

// Note is the number that the author wrote on the value, 0 if there is none.
func (n Node) Note(author *Noter) int {
	if n.d == nil || n.d.noter != author {
		return 0
	}
	return int(n.d.tape[n.i].meta >> noteShift)
}

// Mark notes what holds for the value, besides what was noted before.
func (n Node) Mark(marks Marks) { n.d.tape[n.i].meta |= marks.bits() }

// Marked reports whether the value was marked so, and nothing in it edited since.
// [Document.NotedBy] says whose marks they are.
func (n Node) Marked(marks Marks) bool { return n.d.tape[n.i].meta&marks.bits() == marks.bits() }
