package merge

import "github.com/admission-gateway/gateway/internal/document"

// Fold changes an apply configuration so that it asks for everything in which the object that it
// would result in, before, was changed to after: members and items that were added or changed are
// set, and removed ones are no longer asked for. What did not change is left as it is, so that the
// manager that applies the configuration owns nothing else. Before and after are values of
// documents other than the configuration's.
func (t *Type) Fold(configuration *document.Document, before, after document.Node) {
	f := folder{configuration}
	f.value(t, configuration.Root(), before, after)
}

type folder struct{ d *document.Document }

// value makes at, which is there, ask for the change from before to after.
func (f folder) value(t *Type, at, before, after document.Node) {
	o, l := t.object(), t.list()
	switch {
	case document.EqualNodes(before, after):
	case o != nil && !o.Atomic && all(document.Object, at, before, after):
		f.object(o, at, before, after)
	case l != nil && l.Relation == Associative && all(document.Array, at, before, after):
		f.list(l, at, before, after)
	default:
		f.d.Replace(at, after.Raw())
	}
}

func all(kind document.Kind, nodes ...document.Node) bool {
	for _, n := range nodes {
		if n.Kind() != kind {
			return false
		}
	}
	return true
}

func (f folder) object(o *Object, at, before, after document.Node) {
	for m := after.First(); m.Valid(); m = m.Next() {
		was, had := before.Get(m.Key())
		if had && document.EqualNodes(was, m) {
			continue
		}
		f.member(o.member(m), at, m.Key(), was, m)
	}
	for m := before.First(); m.Valid(); m = m.Next() {
		if _, stays := after.Get(m.Key()); stays {
			continue
		}
		if asked, found := at.Get(m.Key()); found {
			f.d.Remove(asked)
		}
	}
}

// member makes a member of at ask for a change. One that is not asked for yet asks for no more than what changed.
func (f folder) member(t *Type, at document.Node, key string, before, after document.Node) {
	asked, found := at.Get(key)
	o, l := t.object(), t.list()
	switch {
	case found && before.Valid():
		f.value(t, asked, before, after)
	case !before.Valid():
		f.d.Set(at, key, after.Raw())
	case o != nil && !o.Atomic && all(document.Object, before, after):
		f.value(t, f.d.Set(at, key, []byte("{}")), before, after)
	case l != nil && l.Relation == Associative && all(document.Array, before, after):
		f.value(t, f.d.Set(at, key, []byte("[]")), before, after)
	default:
		f.d.Set(at, key, after.Raw())
	}
}

// list folds the items of an associative list, which are identified by their keys, or by their
// values.
func (f folder) list(l *List, at, before, after document.Node) {
	was, is, asked := l.index(before), l.index(after), l.index(at)
	var id []byte
	for item := after.First(); item.Valid(); item = item.Next() {
		id, _ = identity(id[:0], l.Keys, item)
		old, had := was[string(id)]
		switch now, found := asked[string(id)]; {
		case had && document.EqualNodes(old, item):
		case had && found:
			f.value(l.Items, now, old, item)
		case had && l.Items.object() != nil && item.Kind() == document.Object:
			now = f.d.Append(at, []byte("{}"))
			for i := range l.Keys {
				if key, ok := item.Lookup(l.Keys[i].Name); ok {
					f.d.Set(now, l.Keys[i].Name.String(), key.Raw())
				}
			}
			f.value(l.Items, now, old, item)
		case !found:
			f.d.Append(at, item.Raw())
		}
	}
	for item := before.First(); item.Valid(); item = item.Next() {
		id, _ = identity(id[:0], l.Keys, item)
		if now, found := asked[string(id)]; found && !is[string(id)].Valid() {
			f.d.Remove(now)
		}
	}
}

// index finds the items of a list by their identities.
func (l *List) index(list document.Node) map[string]document.Node {
	items := make(map[string]document.Node, list.Len())
	var id []byte
	for item := list.First(); item.Valid(); item = item.Next() {
		id, _ = identity(id[:0], l.Keys, item)
		items[string(id)] = item
	}
	return items
}
