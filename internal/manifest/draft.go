package manifest

import (
	"fmt"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Draft is a value of an object that is being changed. Its parts may come from several files, and
// each of them keeps the place that it has there. The objects themselves do not change.
type Draft struct {
	from *Object
	node document.Node // in from, as it was read; only its place counts once the value was changed
	key  string
	// The value is one of these: the node itself, members or items, or a text in JSON.
	isOpen  bool
	parts   []*Draft
	literal []byte
}

// Draft returns a value of the object as a draft.
func (o *Object) Draft(at document.Node) *Draft {
	return &Draft{from: o, node: at, key: at.Key()}
}

// Place returns the object that the value comes from, and its place in the object.
func (d *Draft) Place() (*Object, document.Node) { return d.from, d.node }

// Key returns the name of a member.
func (d *Draft) Key() string { return d.key }

// Kind returns what the value is.
func (d *Draft) Kind() document.Kind {
	if d.literal != nil {
		return document.String
	}
	return d.node.Kind()
}

// Raw returns the value as JSON if it was not changed.
func (d *Draft) Raw() (raw []byte, isUnchanged bool) {
	if d.isOpen || d.literal != nil {
		return nil, false
	}
	return d.node.Raw(), true
}

// Text returns a string.
func (d *Draft) Text() string { return d.node.Str() }

// Parts returns the members of an object, or the items of a list.
func (d *Draft) Parts() []*Draft {
	if !d.isOpen && d.literal == nil {
		d.isOpen = true
		for m := d.node.First(); m.Valid(); m = m.Next() {
			d.parts = append(d.parts, d.from.Draft(m))
		}
	}
	return d.parts
}

// Member returns a member of an object; nil if there is none.
func (d *Draft) Member(key string) *Draft {
	if d.Kind() != document.Object {
		return nil
	}
	for _, part := range d.Parts() {
		if part.key == key {
			return part
		}
	}
	return nil
}

// Set gives an object a member, in place of the one that it has.
func (d *Draft) Set(key string, value *Draft) {
	one := *value
	one.key = key
	for i, part := range d.Parts() {
		if part.key == key {
			d.parts[i] = &one
			return
		}
	}
	d.parts = append(d.parts, &one)
}

// Append gives a list an item.
func (d *Draft) Append(value *Draft) {
	one := *value
	one.key = ""
	d.parts = append(d.Parts(), &one)
}

// Remove takes a member or an item out.
func (d *Draft) Remove(part *Draft) {
	for i, one := range d.Parts() {
		if one == part {
			d.parts = append(d.parts[:i:i], d.parts[i+1:]...)
			return
		}
	}
}

// SetText makes the value a string, which keeps its place.
func (d *Draft) SetText(text string) {
	d.isOpen, d.parts, d.literal = false, nil, document.AppendString(nil, text)
}

// Empty returns an empty object at the place of another one.
func (d *Draft) Empty() *Draft { return &Draft{from: d.from, node: d.node, isOpen: true} }

// With gives an object the contents of files, in this order, below a member of its own. Each has the name of its file
// as the key. Paths in them begin there: see [Object.Where].
func (d *Draft) With(names []string, files map[string]*Draft) {
	if len(names) == 0 {
		return
	}
	all := d.Empty()
	for _, name := range names {
		all.Set(name, files[name])
	}
	d.Set(FilesKey, all)
}

// FilesKey is the member of an assembled document that has the files which it refers to, by their names.
const FilesKey = "x-admission-gateway-files"

// Assemble returns the object that a draft of it has become.
func (o *Object) Assemble(d *Draft) (*Object, error) {
	t := &text{}
	t.mark(o.position(o.Document().Root()))
	t.enter(o.File)
	t.draft(d)
	if len(t.json) > maxExpandedBytes {
		return nil, fmt.Errorf("must mean at most %d bytes of JSON in all, with what it refers to", maxExpandedBytes)
	}
	p, _, err := parse(t.json)
	if err != nil {
		return nil, fmt.Errorf(notReadable, err)
	}
	p.keep()
	made := *o
	made.JSON, made.parsed, made.places, made.sum = t.json, p, &t.positionTable, nil
	return &made, nil
}

// draft appends a value, the position of which is marked already.
func (t *text) draft(d *Draft) {
	switch {
	case d.literal != nil:
		t.json = append(t.json, d.literal...)
	case !d.isOpen:
		start := d.from.valueOffset(d.node)
		t.appendValue(&text{json: d.from.JSON, positionTable: *d.from.places}, start, start+len(d.node.Raw()))
	default:
		open, end := byte('['), byte(']')
		if d.Kind() == document.Object {
			open, end = '{', '}'
		}
		t.json = append(t.json, open)
		for i, part := range d.parts {
			if i > 0 {
				t.json = append(t.json, ',')
			}
			t.mark(part.from.position(part.node))
			t.enter(part.from.File)
			if open == '{' {
				t.json = append(document.AppendString(t.json, part.key), ':')
			}
			t.draft(part)
		}
		t.json = append(t.json, end)
	}
}
