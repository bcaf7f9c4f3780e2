package document

import (
	"slices"
	"strconv"
)

// AppendDifference appends the operations of a JSON patch (RFC 6902), with commas between them and
// without the brackets, that turn one value into another. Operations stand in document order; lists
// that differ in length, and values of different kinds, are replaced as a whole. Members at the
// paths in except, from the root, are passed over.
func AppendDifference(dst []byte, from, to Node, except [][]string) []byte {
	d := difference{dst: dst, start: len(dst), except: except}
	d.value(from, to)
	return d.dst
}

type difference struct {
	dst    []byte
	start  int
	path   []byte // a JSON pointer
	names  []string
	except [][]string
}

func (d *difference) value(from, to Node) {
	switch {
	case EqualNodes(from, to):
	case from.Kind() == Object && to.Kind() == Object:
		d.object(from, to)
	case from.Kind() == Array && to.Kind() == Array && from.Len() == to.Len():
		i := 0
		for a, b := from.First(), to.First(); a.Valid(); a, b = a.Next(), b.Next() {
			d.at(strconv.Itoa(i), func() { d.value(a, b) })
			i++
		}
	default:
		d.operation("replace", to)
	}
}

func (d *difference) object(from, to Node) {
	for m := from.First(); m.Valid(); m = m.Next() {
		d.at(m.Key(), func() {
			if now, found := to.Get(m.Key()); found {
				d.value(m, now)
			} else {
				d.operation("remove", Node{})
			}
		})
	}
	for m := to.First(); m.Valid(); m = m.Next() {
		if _, found := from.Get(m.Key()); !found {
			d.at(m.Key(), func() { d.operation("add", m) })
		}
	}
}

// at goes to a member or item, unless it is an exception.
func (d *difference) at(step string, do func()) {
	length := len(d.path)
	d.names = append(d.names, step)
	if !slices.ContainsFunc(d.except, func(path []string) bool { return slices.Equal(path, d.names) }) {
		d.path = appendPointerStep(append(d.path, '/'), step)
		do()
	}
	d.names, d.path = d.names[:len(d.names)-1], d.path[:length]
}

func appendPointerStep(dst []byte, step string) []byte {
	for i := range len(step) {
		switch step[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, step[i])
		}
	}
	return dst
}

func (d *difference) operation(op string, value Node) {
	if len(d.dst) > d.start {
		d.dst = append(d.dst, ',')
	}
	d.dst = append(append(append(d.dst, `{"op":"`...), op...), `","path":`...)
	d.dst = AppendString(d.dst, string(d.path))
	if value.Valid() {
		d.dst = value.AppendRaw(append(d.dst, `,"value":`...))
	}
	d.dst = append(d.dst, '}')
}
