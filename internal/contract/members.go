package contract

import "github.com/admission-gateway/gateway/internal/document"

// Members are members of objects that a document marks: readOnly if the API itself sets them, writeOnly if it takes
// them and does not show them.
type Members struct {
	members []member
	items   *Members // in the items of a list
	others  *Members // in the members of a map
}

type member struct {
	name     document.Name
	isMarked bool
	in       *Members // what is marked within it
}

// SetMember marks a member, or says what is marked within it.
func (m *Members) SetMember(name string, isMarked bool, in *Members) {
	m.members = append(m.members, member{document.NewName(name), isMarked, in})
}

// SetItems says what is marked within the items of a list.
func (m *Members) SetItems(in *Members) { m.items = in }

// SetOthers says what is marked within the values of a map.
func (m *Members) SetOthers(in *Members) { m.others = in }

// Any reports whether anything is marked.
func (m *Members) Any() bool {
	return m != nil && (len(m.members) > 0 || m.items != nil || m.others != nil)
}

// Each visits the marked members of an object that differ from the stored one, with what is stored; that is invalid if
// nothing is. Nothing is known of the items of a list that differs from the stored list.
func (m *Members) Each(sent, stored document.Node, visit func(sent, stored document.Node)) {
	if m == nil || stored.Valid() && document.EqualNodes(sent, stored) {
		return
	}
	switch sent.Kind() {
	case document.Array:
		if m.items != nil {
			for n := sent.First(); n.Valid(); n = n.Next() {
				m.items.Each(n, document.Node{}, visit)
			}
		}
	case document.Object:
		for i := range m.members {
			one := &m.members[i]
			n, found := sent.Lookup(one.name)
			if !found {
				continue
			}
			before, _ := stored.Lookup(one.name)
			switch {
			case !one.isMarked:
				one.in.Each(n, before, visit)
			case !before.Valid() || !document.EqualNodes(n, before):
				visit(n, before)
			}
		}
		if m.others != nil {
			for n := sent.First(); n.Valid(); n = n.Next() {
				before, _ := stored.Get(n.Key())
				m.others.Each(n, before, visit)
			}
		}
	}
}

// In returns the marked members of an object.
func (m *Members) In(object document.Node) (found []document.Node) {
	m.Each(object, document.Node{}, func(n, _ document.Node) { found = append(found, n) })
	return found
}

// Missing visits the marked members that an object could have and lacks: the object around each, and its name.
func (m *Members) Missing(object document.Node, visit func(around document.Node, name string)) {
	if m == nil {
		return
	}
	switch object.Kind() {
	case document.Array:
		for n := object.First(); n.Valid() && m.items != nil; n = n.Next() {
			m.items.Missing(n, visit)
		}
	case document.Object:
		for i := range m.members {
			one := &m.members[i]
			n, found := object.Lookup(one.name)
			switch {
			case !one.isMarked:
				one.in.Missing(n, visit)
			case !found:
				visit(object, one.name.String())
			}
		}
		for n := object.First(); n.Valid() && m.others != nil; n = n.Next() {
			m.others.Missing(n, visit)
		}
	}
}
