package manifest

import (
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Line returns the line, counted from 1, of the value at a field path as k8s.io/apimachinery writes
// them: "spec.versions[0].name", "metadata.labels[example.com/x]". Of a member it is the line of
// its key. If the file has no such value, it is the line of its closest ancestor. The empty path is
// the object itself.
func (o *Object) Line(path string) int { return o.position(o.nearest(path)).line }

// nearest returns the value at a field path, or its closest ancestor.
func (o *Object) nearest(path string) document.Node {
	at := o.Document().Root()
	for path != "" {
		n, rest, ok := step(at, path)
		if !ok {
			break
		}
		at, path = n, rest
	}
	return at
}

// A Position is the position of a value of an object.
type Position struct {
	File string
	// Line and Column count lines and characters from 1; 0 means all of them.
	Line, Column int
	// Path is the field path of the value within the file.
	Path string
}

// Where returns the place of the value at a field path, in the line that [Object.Line] returns. The file is that of the
// object, unless the object was assembled of several ones.
func (o *Object) Where(path string) Position {
	n := o.nearest(path)
	offset, _ := n.Offset()
	at := o.position(n)
	p := Position{o.File, at.line, at.column, path}
	if file := o.places.file(offset); file != "" {
		p.File = file
		if within, isFile := strings.CutPrefix(path, FilesKey+"["+file+"]"); isFile {
			p.Path = strings.TrimPrefix(within, ".")
		}
	}
	return p
}

// At returns the value at a field path, which must not be edited; false if there is none.
func (o *Object) At(path string) (document.Node, bool) {
	at := o.Document().Root()
	for path != "" {
		n, rest, ok := step(at, path)
		if !ok {
			return document.Node{}, false
		}
		at, path = n, rest
	}
	return at, true
}

// position returns the position at which a value of the object begins.
func (o *Object) position(n document.Node) position {
	offset, _ := n.Offset()
	return o.places.in(o.JSON, offset)
}

// step takes the first element off a field path. Keys may themselves hold dots and brackets, and both ways to
// write a key are in use (`properties.a.b` and `properties[a.b]`), so the value's own keys decide: the longest wins.
func step(at document.Node, path string) (found document.Node, rest string, ok bool) {
	switch at.Kind() {
	case document.Array:
		digits, rest, closed := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(digits)
		if !closed || path[0] != '[' || err != nil {
			return document.Node{}, "", false
		}
		found, ok = at.At(i)
		return found, rest, ok
	case document.Object:
		bracketed := path[0] == '['
		path = strings.TrimPrefix(path, ".")
		longest := 0
		for m := at.First(); m.Valid(); m = m.Next() {
			key := m.Key()
			after, has := path, true
			if bracketed {
				after = path[1:]
			}
			if after, has = strings.CutPrefix(after, key); has && bracketed {
				after, has = strings.CutPrefix(after, "]")
			}
			if !has || after != "" && after[0] != '.' && after[0] != '[' {
				continue
			}
			if !ok || len(key) > longest {
				found, longest, rest, ok = m, len(key), after, true
			}
		}
		return found, rest, ok
	default:
		return document.Node{}, "", false
	}
}
