package document

import (
	"strconv"
	"strings"
)

// Path writes the location of the value in JavaScript's syntax, without a leading dot:
// "spec.items[1].name". A key that has more in it than ASCII letters, digits, '_', '$' and '-', or
// that begins with a digit or '-', stands in brackets: "metadata.labels[example.com/x]"; in quotes
// too if it could be misread even so. The root's path is "".
func (d *Document) Path(n Node) string {
	if n.d != d || d == nil {
		return ""
	}
	return d.pathOf(n.i)
}

// Path is the path of the value in its document, see Document.Path.
func (n Node) Path() string { return n.d.Path(n) }

func (d *Document) pathOf(i uint32) string {
	if i == 0 {
		return ""
	}
	return string(d.appendPath(make([]byte, 0, 64), i))
}

// appendPath is also used on a tape that the parser gave up on. There the
// entries above i have kind, key and parent, their children are chained up to
// the one on the way to i, and nothing else may be relied on.
func (d *Document) appendPath(dst []byte, i uint32) []byte {
	if i == 0 {
		return dst
	}
	e := &d.tape[i]
	dst = d.appendPath(dst, e.parent)
	parent := &d.tape[e.parent]
	if Kind(parent.meta&kindMask) == Object {
		raw := d.source(e)[e.key:e.keyEnd]
		if e.meta&flagKeyEscaped != 0 {
			raw = appendDecoded(nil, raw)
		}
		return AppendPathKey(dst, viewString(raw))
	}
	return AppendPathIndex(dst, d.position(e.parent, i))
}

// position counts the live items before i.
func (d *Document) position(parent, i uint32) int {
	k := parent + 1
	if d.tape[parent].meta&flagHead != 0 {
		k = d.chainFirst(parent)
	}
	position := 0
	for ; k != i && k != 0; k = d.chainNext(k) {
		if d.tape[k].meta&flagRemoved == 0 {
			position++
		}
	}
	return position
}

// AppendPathKey appends the step to the member with the key. Very long keys are
// cut.
func AppendPathKey(dst []byte, key string) []byte {
	if isName(key) {
		if len(dst) > 0 {
			dst = append(dst, '.')
		}
		return append(dst, abbreviate(key)...)
	}
	dst = append(dst, '[')
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '[' || r == ']' ||
			r == '\'' || r == '"'
	}) {
		dst = append(dst, strconv.Quote(abbreviate(key))...)
	} else {
		dst = append(dst, abbreviate(key)...)
	}
	return append(dst, ']')
}

// AppendPathIndex appends the step to the item at the position.
func AppendPathIndex(dst []byte, position int) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(position), 10)
	return append(dst, ']')
}

// isName reports whether a key can follow a dot.
func isName(key string) bool {
	for i := range len(key) {
		c := key[i]
		if c|0x20-'a' < 26 || c == '_' || c == '$' || i > 0 && (c-'0' <= 9 || c == '-') {
			continue
		}
		return false
	}
	return key != ""
}
