package defaults

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

// An UnsetField is a position in an object at which the field that a path names is unset.
type UnsetField struct {
	path *Path
	at   document.Node // the object or list in which the rest of the path is missing
	from int           // the step that is missing first
	typ  *merge.Type   // of at
	self document.Node
}

// Self is the object that has the field: an empty one if it is not there yet, or one with the keys
// of the item that it is going to be.
func (p *UnsetField) Self() document.Node { return p.self }

// Unset appends the positions in an object of the type at which the field is unset and can be set
// without a change to anything that is there. A null counts as unset unless the type says that it
// is a value, or nothing. Items are added only to lists whose items are identified, by the type, by
// just the keys that the path gives. Positions of one call do not touch each other, and stay good
// until anything else edits the object.
func (p *Path) Unset(to []UnsetField, object document.Node, t *merge.Type) []UnsetField {
	f := unsetFinder{path: p, found: to}
	f.value(object, t, 0, document.Node{})
	return f.found
}

type unsetFinder struct {
	path  *Path
	found []UnsetField
}

// value looks for the step i of the path in a value. owner is the object that the value is in.
func (f *unsetFinder) value(v document.Node, t *merge.Type, i int, owner document.Node) {
	if t == nil {
		t = merge.Deduced()
	}
	switch s := &f.path.steps[i]; s.kind {
	case toMember:
		f.member(v, t, i)
	case toEach:
		list := v.Kind() == document.Array
		if !list && v.Kind() != document.Object {
			return
		}
		for c := v.Children(); c.Valid(); c.Next() {
			item := c.Node()
			if list {
				f.value(item, itemType(t), i+1, owner)
			} else {
				f.value(item, memberType(t, item.Key()), i+1, v)
			}
		}
	case toItem:
		f.item(v, t, i, owner)
	}
}

func (f *unsetFinder) member(v document.Node, t *merge.Type, i int) {
	if v.Kind() != document.Object {
		return
	}
	s := &f.path.steps[i]
	mt := memberType(t, s.name)
	m, ok := v.Lookup(s.member)
	switch {
	case !ok || m.Kind() == document.Null && !nullable(mt):
		f.missing(v, t, mt, i, v)
	case i < len(f.path.steps)-1:
		f.value(m, mt, i+1, v)
	}
}

func (f *unsetFinder) item(v document.Node, t *merge.Type, i int, owner document.Node) {
	if v.Kind() != document.Array {
		return
	}
	s, there := &f.path.steps[i], false
	for c := v.Children(); c.Valid(); c.Next() {
		item := c.Node()
		if !s.names(item, t.List) {
			continue
		}
		there = true
		if i < len(f.path.steps)-1 {
			f.value(item, itemType(t), i+1, owner)
		}
	}
	if !there && s.addable(t.List) {
		f.missing(v, t, itemType(t), i, owner)
	}
}

// missing notes the place if what is missing after the step i can be made: t is the type of the
// last existing value, next the type of the step.
func (f *unsetFinder) missing(at document.Node, t, next *merge.Type, i int, owner document.Node) {
	steps := f.path.steps
	for n := i + 1; n < len(steps); n++ {
		s := &steps[n]
		switch {
		case s.kind == toMember:
			next = memberType(next, s.name)
		case s.kind == toItem && next != nil && s.addable(next.List):
			next = itemType(next)
		default:
			return
		}
	}
	f.found = append(f.found, UnsetField{path: f.path, at: at, from: i, typ: t, self: f.path.self(i, t, owner)})
}

// self is the object that is going to have the field. owner is the innermost one that is there.
func (p *Path) self(from int, t *merge.Type, owner document.Node) document.Node {
	holder := len(p.steps) - 1 // the step to the field within that object
	for holder > 0 && p.steps[holder].kind != toMember {
		holder--
	}
	if from >= holder {
		return owner
	}
	if s := &p.steps[holder-1]; s.kind == toItem {
		for i := from; i < holder-1; i++ {
			t = p.steps[i].typeWithin(t)
		}
		return constant(string(s.appendItem(nil, t.List, nil)))
	}
	return p.empty
}

// Set sets the field to a JSON value, and makes what it is in. With keys of an
// item as the path's last step the value must be an object; the keys are set
// whatever it gives for them.
func (p *UnsetField) Set(d *document.Document, value []byte) {
	s := &p.path.steps[p.from]
	if s.kind == toItem {
		d.Append(p.at, s.appendItem(nil, p.typ.List, p.path.appendRest(nil, itemType(p.typ), p.from+1, value)))
		return
	}
	if p.from < len(p.path.steps)-1 {
		value = p.path.appendRest(nil, memberType(p.typ, s.name), p.from+1, value)
	}
	d.Set(p.at, s.name, value)
}

// appendRest writes a value of the type that has nothing but the rest of the path.
func (p *Path) appendRest(dst []byte, t *merge.Type, i int, value []byte) []byte {
	if i == len(p.steps) {
		return append(dst, value...)
	}
	s := &p.steps[i]
	if s.kind == toItem {
		dst = append(dst, '[')
		dst = s.appendItem(dst, t.List, p.appendRest(nil, itemType(t), i+1, value))
		return append(dst, ']')
	}
	dst = append(document.AppendString(append(dst, '{'), s.name), ':')
	return append(p.appendRest(dst, memberType(t, s.name), i+1, value), '}')
}

// names reports whether an item has the keys. The keys of the list's type may have defaults.
func (s *step) names(item document.Node, l *merge.List) bool {
	if item.Kind() != document.Object {
		return false
	}
	for i := range s.keys {
		k := &s.keys[i]
		v, ok := item.Lookup(k.member)
		if of := keyOf(l, k.name); !ok && of != nil {
			v, ok = of.Default, of.Default.Valid()
		}
		if !ok || !k.is(v) {
			return false
		}
	}
	return true
}

func (k *key) is(v document.Node) bool {
	if v.Kind() == document.String {
		return v.Is(k.value)
	}
	return k.literal.Valid() && document.EqualNodes(v, k.literal)
}

// addable reports whether an item with the keys can be added to a list: they are just the keys that
// identify its items, other than keys with defaults, and of their types.
func (s *step) addable(l *merge.List) bool {
	if l == nil || l.Relation != merge.Associative || len(l.Keys) == 0 {
		return false
	}
	given := 0
	for i := range l.Keys {
		of := &l.Keys[i]
		k := s.key(of.Name.String())
		switch {
		case k == nil && !of.Default.Valid():
			return false
		case k != nil && !k.fits(l.Items, of.Name.String()):
			return false
		case k != nil:
			given++
		}
	}
	return given == len(s.keys)
}

func (s *step) key(name string) *key {
	for i := range s.keys {
		if s.keys[i].name == name {
			return &s.keys[i]
		}
	}
	return nil
}

func keyOf(l *merge.List, name string) *merge.Key {
	if l == nil {
		return nil
	}
	for i := range l.Keys {
		if l.Keys[i].Name.String() == name {
			return &l.Keys[i]
		}
	}
	return nil
}

// fits reports whether the key's value can be one of the member's type.
func (k *key) fits(items *merge.Type, name string) bool {
	switch scalarOf(items, name) {
	case merge.Text, merge.Any:
		return true
	case merge.Numeric:
		return k.literal.Kind() == document.Number
	case merge.Boolean:
		return k.literal.Kind() == document.Bool
	}
	return false
}

// appendItem writes an item with the keys and what is in an object besides.
func (s *step) appendItem(dst []byte, l *merge.List, object []byte) []byte {
	item, err := document.Parse([]byte("{}"), document.Limits{})
	if err != nil {
		return dst
	}
	defer item.Release()
	for i := range s.keys {
		k := &s.keys[i]
		if scalar := scalarOf(l.Items, k.name); k.literal.Valid() && scalar != merge.Text {
			item.Set(item.Root(), k.name, k.literal.Raw())
		} else {
			item.SetString(item.Root(), k.name, k.value)
		}
	}
	most := len(object) + 1 // of whatever there is in it
	if more, err := document.Parse(object, document.Limits{Bytes: most, Depth: most, Nodes: most}); err == nil {
		defer more.Release()
		for c := more.Root().Children(); c.Valid(); c.Next() {
			if m := c.Node(); s.key(m.Key()) == nil {
				item.Set(item.Root(), m.Key(), m.Raw())
			}
		}
	}
	return item.AppendTo(dst)
}

func scalarOf(items *merge.Type, name string) merge.Scalar {
	if t := memberType(items, name); t != nil {
		return t.Scalar
	}
	return merge.Any
}

// typeWithin is the type of the value that the step leads to.
func (s *step) typeWithin(t *merge.Type) *merge.Type {
	if s.kind == toMember {
		return memberType(t, s.name)
	}
	return itemType(t)
}

// memberType is the type of an object's member, nil if nothing is known.
func memberType(t *merge.Type, name string) *merge.Type {
	if t == nil || t.Object == nil {
		return nil
	}
	return t.Object.Member(name)
}

func itemType(t *merge.Type) *merge.Type {
	if t == nil || t.List == nil {
		return nil
	}
	return t.List.Items
}

func nullable(t *merge.Type) bool { return t == nil || t.Nullable }
