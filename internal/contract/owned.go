package contract

import "github.com/admission-gateway/gateway/internal/document"

// Owned says which members of objects the API itself sets: a document calls them readOnly.
type Owned struct {
	members []ownedMember
	items   *Owned // in the items of a list
	others  *Owned // in the members of a map
}

type ownedMember struct {
	name    document.Name
	isOwned bool
	in      *Owned // what is owned within it
}

// SetMember says of a member that the API sets it, or what the API sets within it.
func (o *Owned) SetMember(name string, isOwned bool, in *Owned) {
	o.members = append(o.members, ownedMember{document.NewName(name), isOwned, in})
}

// SetItems says what the API sets within the items of a list.
func (o *Owned) SetItems(in *Owned) { o.items = in }

// SetOthers says what the API sets within the values of a map.
func (o *Owned) SetOthers(in *Owned) { o.others = in }

// Any reports whether anything is owned.
func (o *Owned) Any() bool {
	return o != nil && (len(o.members) > 0 || o.items != nil || o.others != nil)
}

// Each visits the owned members of an object that differ from the stored one, with what is stored; that is invalid if
// nothing is. Nothing is known of the items of a list that differs from the stored list.
func (o *Owned) Each(sent, stored document.Node, visit func(sent, stored document.Node)) {
	if o == nil || stored.Valid() && document.EqualNodes(sent, stored) {
		return
	}
	switch sent.Kind() {
	case document.Array:
		if o.items != nil {
			for n := sent.First(); n.Valid(); n = n.Next() {
				o.items.Each(n, document.Node{}, visit)
			}
		}
	case document.Object:
		for i := range o.members {
			m := &o.members[i]
			n, found := sent.Lookup(m.name)
			if !found {
				continue
			}
			before, _ := stored.Lookup(m.name)
			switch {
			case !m.isOwned:
				m.in.Each(n, before, visit)
			case !before.Valid() || !document.EqualNodes(n, before):
				visit(n, before)
			}
		}
		if o.others != nil {
			for n := sent.First(); n.Valid(); n = n.Next() {
				before, _ := stored.Get(n.Key())
				o.others.Each(n, before, visit)
			}
		}
	}
}
