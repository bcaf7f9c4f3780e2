package manifest

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// A text is compact JSON while it is written, with the table of its lines.
type text struct {
	json []byte
	places
	bare bool // lines are not needed
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

// mark notes the line of what is written next.
func (t *text) mark(line int) {
	if t.bare || len(t.marks) > 0 && t.marks[len(t.marks)-1].line == uint32(line) {
		return
	}
	t.marks = append(t.marks, mark{uint32(len(t.json)), uint32(line)})
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
		t.mark(from.line(start))
		for _, m := range from.marks[from.marksUpTo(start):] {
			if int(m.offset) >= end {
				break
			}
			t.marks = append(t.marks, mark{m.offset + shift, m.line})
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
	typed.mark(t.line(0))
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
