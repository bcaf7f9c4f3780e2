package merge

import (
	"strconv"

	"github.com/admission-gateway/gateway/internal/document"
)

// identity is the identity of an item of a list, as text: equal for items with equal keys, or in a
// set for equal items. present is false if the item has none of the keys, or is no object; the
// identity of an item of a set is the item.
func identity(dst []byte, keys []Key, item document.Node) (id []byte, present bool) {
	if len(keys) == 0 {
		return appendIdentity(dst, item), true
	}
	if item.Kind() != document.Object {
		return dst, false
	}
	for i := range keys {
		value := keys[i].of(item)
		if !value.Valid() {
			dst = append(dst, '-') // an item without the key differs from all that have it
			continue
		}
		dst = appendIdentity(dst, value)
		present = true
	}
	return dst, present
}

// of is the value of the key in an item, or its default; invalid without both.
func (k *Key) of(item document.Node) document.Node {
	if value, ok := item.Lookup(k.Name); ok {
		return value
	}
	return k.Default
}

// appendIdentity writes a value so that equal values are written alike and one
// never begins another.
func appendIdentity(dst []byte, n document.Node) []byte {
	switch n.Kind() {
	case document.String:
		s := n.Str()
		dst = append(dst, 's')
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		dst = append(dst, ':')
		return append(dst, s...)
	case document.Number:
		if i, ok := n.Int64(); ok {
			return append(strconv.AppendInt(append(dst, 'n'), i, 10), ';')
		}
		f, _ := n.Float64()
		return append(strconv.AppendFloat(append(dst, 'f'), f, 'g', -1, 64), ';')
	case document.Bool:
		return strconv.AppendBool(dst, n.Bool())
	case document.Null:
		return append(dst, '0')
	}
	raw := n.Raw()
	dst = append(dst, 'r')
	dst = strconv.AppendInt(dst, int64(len(raw)), 10)
	dst = append(dst, ':')
	return append(dst, raw...)
}

// pathStep writes the step to an item as structured merges do: [name="x"],
// [="x"] in a set.
func (l *List) pathStep(dst []byte, item document.Node) []byte {
	dst = append(dst, '[')
	if len(l.Keys) == 0 {
		return append(item.AppendRaw(append(dst, '=')), ']')
	}
	comma := false
	for i := range l.Keys {
		value := l.Keys[i].of(item)
		if !value.Valid() {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(append(dst, l.Keys[i].Name.String()...), '=')
		dst = value.AppendRaw(dst)
	}
	return append(dst, ']')
}
