package message

import (
	"fmt"
	"slices"
	"strings"
)

// Edits change the header lines of a message on its way. They are made once, and then only read. The nil Edits change
// nothing.
type Edits struct {
	removed []string // names of lines that are taken out
	names   [][]byte // the same
	lines   []editedLine
	fields  FieldSet // those of written among removed
}

// editedLine is a line that is added.
type editedLine struct {
	name  string
	field Field
	line  string // with its CR LF
}

// uneditable are the fields that edits must not change: they end at this hop, they frame the message, or they say who
// asks.
const uneditable = hopByHop | 1<<FieldContentLength | 1<<FieldExpect | 1<<FieldHost | 1<<FieldImpersonate |
	1<<FieldXRemote

// written are the fields that the gateway itself writes into the head of each request. An edit has the last word.
const written FieldSet = 1<<FieldForwarded | 1<<FieldVia | 1<<FieldXForwardedFor | 1<<FieldXForwardedHost |
	1<<FieldXForwardedProto

const (
	// Judged are the fields on which it depends what a backend takes a request for. A request that was judged as it
	// came must reach the backend with them as they came.
	Judged FieldSet = 1<<FieldContentEncoding | 1<<FieldContentType | 1<<FieldIfMatch | 1<<FieldIfModifiedSince |
		1<<FieldIfNoneMatch |
		1<<FieldIfRange | 1<<FieldIfUnmodifiedSince | 1<<FieldMethodOverride
	// Paths are the fields in which a request names another path than its own.
	Paths FieldSet = 1 << FieldTargetOverride
)

// IsEdited reports whether a name is one of the fields, also if it is so only for servers that read '_' as '-'.
func (s FieldSet) IsEdited(name string) bool {
	f := FieldOf([]byte(strings.ReplaceAll(name, "_", "-")))
	return f != FieldOther && s.Has(f)
}

// Without returns the edits that change no line of the fields, and the names of the lines that they leave alone.
func (e *Edits) Without(fields FieldSet) (rest *Edits, left []string) {
	if e == nil {
		return nil, nil
	}
	leave := func(name string) bool {
		if !fields.IsEdited(name) {
			return false
		}
		if !slices.ContainsFunc(left, func(other string) bool { return strings.EqualFold(name, other) }) {
			left = append(left, name)
		}
		return true
	}
	rest = &Edits{}
	for _, name := range e.removed {
		if !leave(name) {
			rest.Remove(name)
		}
	}
	for _, l := range e.lines {
		if !leave(l.name) {
			rest.lines = append(rest.lines, l)
		}
	}
	if len(left) == 0 {
		return e, nil
	}
	return rest, left
}

// CheckEdit returns an error if edits must not change lines of a name, or set them to a value.
func CheckEdit(name, value string) error {
	var line Header
	text := []byte(name + ": " + value + "\r\n")
	if size, _, problem := scanHeader(text, &line); problem != "" || size != len(text) || string(line.Name) != name {
		return fmt.Errorf("the header '%s' must have a name that is a token, and a value in one line without control characters", name)
	}
	if uneditable.Has(clientField([]byte(name))) {
		return fmt.Errorf("the header '%s' must not be edited: it is about the connection, the framing, the host, or who asks", name)
	}
	return nil
}

// Remove takes out the lines of a name, and those that were set or added before.
func (e *Edits) Remove(name string) {
	kept := e.lines[:0]
	for _, l := range e.lines {
		if !strings.EqualFold(l.name, name) {
			kept = append(kept, l)
		}
	}
	e.lines = kept
	if !e.removes([]byte(name)) {
		e.removed, e.names = append(e.removed, name), append(e.names, []byte(name))
		e.fields |= 1 << FieldOf([]byte(name)) & written
	}
}

// Set puts a line in the place of all lines of its name.
func (e *Edits) Set(name, value string) {
	e.Remove(name)
	e.Add(name, value)
}

// Add adds a line. One of a field that must not have two is put in the place of the other.
func (e *Edits) Add(name, value string) {
	field := FieldOf([]byte(name))
	if single.Has(field) {
		e.Remove(name)
	}
	e.lines = append(e.lines, editedLine{name, field, name + ": " + value + "\r\n"})
}

// removes reports whether the lines of a name are taken out.
func (e *Edits) removes(name []byte) bool {
	if e == nil {
		return false
	}
	for _, one := range e.names {
		if equalFold(one, name) {
			return true
		}
	}
	return false
}

// takes reports whether the edits have the word about a field that the gateway writes.
func (e *Edits) takes(f Field) bool { return e != nil && e.fields.Has(f) }

// appendLines appends the lines that are added, but for those of fields about which the gateway has the word.
func (e *Edits) appendLines(dst []byte, own FieldSet) []byte {
	if e == nil {
		return dst
	}
	for i := range e.lines {
		if l := &e.lines[i]; l.field == FieldOther || !own.Has(l.field) {
			dst = append(dst, l.line...)
		}
	}
	return dst
}

// Edit changes the head of an answer.
func (r *Response) Edit(e *Edits) {
	if e == nil {
		return
	}
	r.Remove(e.removed...)
	for i := range e.lines {
		r.AddLines(e.lines[i].line)
	}
}
