package manifest

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// A text is compact JSON while it is written, with the table of its lines.
type text struct {
	json []byte
	positionTable
	bare bool // positions are not needed
	last mark // of the last member or item, whether it is among the marks or not
}

// fit gives back the room that the text and the table do not need. They live as long as the object.
func (t *text) fit() {
	t.json, t.marks = fitted(t.json), fitted(t.marks)
}

func fitted[T any](s []T) []T {
	if cap(s)-len(s) <= cap(s)/8 {
		return s
	}
	return slices.Clone(s)
}

// position returns the position of the member or item that begins at an offset.
func (t *text) position(offset int) position { return t.in(t.json, offset) }

// mark notes the position of what is written next.
func (t *text) mark(at position) {
	if t.bare {
		return
	}
	n, offset := len(t.marks), len(t.json)
	isMarked := n == 0 || t.last.follows(t.json, offset) != at || offset-int(t.marks[n-1].offset) > markEvery
	t.last = mark{uint32(offset), uint32(at.line), uint32(at.column)}
	if isMarked {
		t.marks = append(t.marks, t.last)
	}
}

// enter notes the file of what is written next.
func (t *text) enter(file string) {
	if n := len(t.files); n == 0 || t.files[n-1].file != file {
		t.files = append(t.files, origin{uint32(len(t.json)), file})
	}
}

// adopt takes over the places of from.json[start:end], which is written next.
func (t *text) adopt(from *text, start, end int) {
	shift := uint32(len(t.json)) - uint32(start) // modulo 2^32, as are the sums
	if !t.bare {
		t.mark(from.position(start))
		for _, m := range from.marks[from.marksUpTo(start):] {
			if int(m.offset) >= end {
				break
			}
			m.offset += shift
			t.marks = append(t.marks, m)
			t.last = m
		}
	}
	for _, l := range from.lettersFrom(start) {
		if int(l.offset) >= end {
			break
		}
		t.letters = append(t.letters, letter{offset: l.offset + shift, char: l.char})
	}
}

// append appends from.json[start:end] with its places.
func (t *text) append(from *text, start, end int) {
	t.adopt(from, start, end)
	t.json = append(t.json, from.json[start:end]...)
}

// appendValue appends the value at from.json[start:end], which begins on the line marked before,
// with the places of what is in it.
func (t *text) appendValue(from *text, start, end int) {
	if c := from.json[start]; c == '{' || c == '[' {
		t.json = append(t.json, c)
		t.append(from, start+1, end)
		return
	}
	if l := from.letterAt(start); l != nil {
		t.letters = append(t.letters, letter{offset: uint32(len(t.json)), char: l.char})
	}
	t.json = append(t.json, from.json[start:end]...)
}

// part returns json[start:end] as a text of its own, which shares its memory.
func (t *text) part(start, end int) *text {
	p := &text{}
	p.adopt(t, start, end)
	p.json = t.json[start:end:end]
	return p
}

// withType returns an object that is not empty with apiVersion and kind if it has none.
func (t *text) withType(root document.Node, apiVersion, kind string) *text {
	typed := &text{json: make([]byte, 0, len(t.json)+64)}
	typed.mark(t.position(0))
	typed.json = append(typed.json, '{')
	for _, m := range []struct{ key, value string }{{"apiVersion", apiVersion}, {"kind", kind}} {
		if _, ok := root.Get(m.key); !ok {
			typed.json = append(document.AppendString(typed.json, m.key), ':')
			typed.json = append(document.AppendString(typed.json, m.value), ',')
		}
	}
	typed.append(t, 1, len(t.json))
	return typed
}
