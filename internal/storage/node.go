package storage

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// Find follows a path of member names. The empty path is the node itself, a nil one leads nowhere.
func Find(at document.Node, path resource.FieldPath) (document.Node, bool) {
	if path == nil {
		return document.Node{}, false
	}
	for _, key := range path {
		next, found := at.Get(key)
		if !found {
			return document.Node{}, false
		}
		at = next
	}
	return at, true
}

// SetAt sets the member at a path. Parents that are missing or null are made, so that a field within
// another object does not depend on whether the client sent that one. The error is a [*field.Error]
// about a parent that is no object.
func SetAt(d *document.Document, path resource.FieldPath, raw []byte) error {
	last := len(path) - 1
	parent := d.Root()
	for i, key := range path[:last] {
		next, found := parent.Get(key)
		switch {
		case !found || next.Kind() == document.Null:
			next = d.Set(parent, key, []byte("{}"))
		case next.Kind() != document.Object:
			return status.Type(PathString(path[:i+1]), next.Kind().String(), "object")
		}
		parent = next
	}
	d.Set(parent, path[last], raw)
	return nil
}

// PathString returns the path as messages write it.
func PathString(path resource.FieldPath) string {
	var b []byte
	for _, key := range path {
		b = document.AppendPathKey(b, key)
	}
	return string(b)
}

var metadataName = document.NewName("metadata")

// Metadata returns the metadata of an object. It is invalid if the object has none, and for nil.
func Metadata(d *document.Document) document.Node {
	if d == nil {
		return document.Node{}
	}
	if metadata, found := d.Root().Step(&metadataName); found && metadata.Kind() == document.Object {
		return metadata
	}
	return document.Node{}
}

// EnsureMetadata returns the metadata of an object, which it makes if there is none.
func EnsureMetadata(d *document.Document) document.Node {
	if metadata := Metadata(d); metadata.Valid() {
		return metadata
	}
	return d.Set(d.Root(), "metadata", []byte("{}"))
}

// TextIn returns a member that is a string; "" if it is not one.
func TextIn(object document.Node, key string) string {
	at, _ := object.Get(key)
	return at.Str()
}

// Given returns a member, and whether it is there and not null.
func Given(object document.Node, key string) (document.Node, bool) {
	at, found := object.Get(key)
	return at, found && at.Kind() != document.Null
}

// Text reads a member that must be a string if it is given; the empty string and null are the same as
// none. In messages the prefix comes before the member's name.
func Text(object document.Node, key, prefix string) (string, error) {
	at, _ := object.Get(key)
	return textOf(at, key, prefix)
}

// textOf is Text for a member that was looked up before; it is invalid if there is none.
func textOf(at document.Node, key, prefix string) (string, error) {
	if text, ok := at.Text(); ok { // without escapes, and so without NUL
		return text, nil
	}
	switch at.Kind() {
	case document.Invalid, document.Null:
		return "", nil
	case document.String:
		if at.HasNUL() {
			return "", status.BadRequest("`%s%s` must not have a NUL character in it", prefix, key)
		}
		return at.Str(), nil
	}
	return "", status.BadRequest("`%s%s` must be a string, not %s", prefix, key, at.Kind().WithArticle())
}

// SetMissing sets a string that is missing; the empty string and null are the same as none.
func SetMissing(d *document.Document, object document.Node, key, value string) {
	if at, found := object.Get(key); !found || at.Kind() == document.Null || at.Is("") {
		d.SetString(object, key, value)
	}
}

// EqualBeside reports whether two objects are equal but for one member.
func EqualBeside(a, b document.Node, beside string) bool {
	n := 0
	for m := a.First(); m.Valid(); m = m.Next() {
		key := m.Key()
		if key == beside {
			continue
		}
		other, found := b.Get(key)
		if !found || !document.EqualNodes(m, other) {
			return false
		}
		n++
	}
	if _, found := b.Get(beside); found {
		n++
	}
	return n == b.Len()
}

// ExactCase refuses members that a backend which folds case would read as one of the known ones. found
// gets those that are there, as [document.Fields.In] has it.
func ExactCase(object document.Node, known *document.Fields, found []document.Node, prefix string) error {
	if variant, name := known.In(object, found); variant.Valid() {
		return status.BadRequest("unknown field '%s%.253s': field names are case-sensitive, it must be written `%s%s`", prefix, variant.Key(), prefix, name)
	}
	return nil
}

// Short cuts what a client sent to a length that fits a message.
func Short(s string) string { return quote.ClipDots(s, quote.MaxScalar) }
