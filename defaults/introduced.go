package defaults

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// A Change says how the part of an object that a write changes reaches the backend.
type Change struct {
	// HasWholeLists says that a list is sent as a whole if anything in it changes, so that all of its items are the
	// write's. Otherwise they are told apart by their positions.
	HasWholeLists bool
	// IsMerged says that the backend merges objects into what it has stored. It may have stored an object that it
	// does not show, so that none but the ones in lists are the write's alone.
	IsMerged bool
}

// Withhold takes back the defaults in filled, which was before without them, wherever the backend has shown the
// object and nothing has changed it since: a backend may have stored what it does not show. What stays are the
// defaults of values that are not in shown, and of members that were in shown and are in before no more.
func (c Change) Withhold(filled, before, shown document.Node) {
	switch {
	case before.Kind() == document.Object && (shown.Kind() == document.Object || c.IsMerged && !shown.Valid()):
		c.withholdMembers(filled, before, shown)
	case before.Kind() == document.Array && shown.Kind() == document.Array && !c.HasWholeLists:
		c.withholdItems(filled, before, shown)
	case document.EqualNodes(before, shown) && !document.EqualNodes(filled, before):
		filled.Document().Replace(filled, before.AppendRaw(nil)) // also a null that a default had replaced
	}
}

func (c Change) withholdMembers(filled, before, shown document.Node) {
	for m := filled.First(); m.Valid(); {
		next := m.Next()
		was, wasThere := before.Get(m.Key())
		seen, isShown := shown.Get(m.Key())
		switch {
		case wasThere && (isShown || c.IsMerged):
			c.Withhold(m, was, seen)
		case !wasThere && !isShown:
			filled.Document().Remove(m)
		}
		m = next
	}
}

func (c Change) withholdItems(filled, before, shown document.Node) {
	is, was, seen := document.Items(filled), document.Items(before), document.Items(shown)
	if len(is) != len(was) {
		return // no default adds items
	}
	for i, at := range document.MatchItems(was, seen) {
		switch at {
		case document.NoItem: // it was added
		case document.UnknownItem: // which of these were added is not known
			c.Withhold(is[i], was[i], was[i])
		default:
			c.Withhold(is[i], was[i], seen[at])
		}
	}
}

// Introduces reports whether a member that an object lacks is missing there because of what has changed since the
// backend has shown the object that it is in.
func (c Change) Introduces(object document.Node, name string, shown document.Node) bool {
	at := counterpart(object, shown)
	if at.Kind() != document.Object {
		return at.Valid() || !c.IsMerged || isInList(object)
	}
	_, isShown := at.Get(name)
	return isShown
}

// isInList reports whether a value is in a list.
func isInList(n document.Node) bool {
	for ; n.Valid(); n = n.Parent() {
		if n.Kind() == document.Array {
			return true
		}
	}
	return false
}

// counterpart returns the value at the place of a node in another object; an invalid node if there is none.
func counterpart(n, in document.Node) document.Node {
	parent := n.Parent()
	if !parent.Valid() {
		return in
	}
	at := counterpart(parent, in)
	if parent.Kind() == document.Object {
		at, _ = at.Get(n.Key())
		return at
	}
	i := 0
	for item := parent.First(); item.Valid() && item.Index() != n.Index(); item = item.Next() {
		i++
	}
	at, _ = at.At(i)
	return at
}

// IsComplete reports whether nothing is missing in an object that a schema has a literal default for, as far as that
// is known without a look at all of it.
func IsComplete(d *document.Document, s *schema.Schema) bool {
	return s.Noted(d) && d.Root().Marked(document.Complete) && len(s.Derived()) == 0
}

// ApplyTo fills in the defaults of a shape in a value. A null stays, whatever the shape allows. It returns false if the
// document becomes longer than most bytes.
func ApplyTo(value document.Node, s *schema.Shape, most int) bool {
	f := filler{Document: value.Document(), most: most, keepsNulls: true}
	if s.HasDefaults() {
		f.fill(s, value)
	}
	return !f.full()
}
