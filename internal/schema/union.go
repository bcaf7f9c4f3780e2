package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// union is a set of members of an object; at most one may be set (VAL-6).
type union struct {
	discriminator document.Name
	discriminated bool
	fallback      string // the default of the discriminator
	members       []unionMember
	names         []string // as messages write them
}

type unionMember struct {
	name     document.Name
	shape    *Shape
	value    string // of the discriminator
	optional bool
}

// of is the member's value in an object, invalid if it is not set.
func (m *unionMember) of(v document.Node) document.Node {
	if n, found := v.Lookup(m.name); !m.shape.unset(n, found) {
		return n
	}
	return document.Node{}
}

// chosen is the value of the discriminator, or its default; empty if there is neither.
func (u *union) chosen(v document.Node) string {
	if n, found := v.Lookup(u.discriminator); found && n.Kind() == document.String {
		return n.Str()
	}
	return u.fallback
}

// stale reports whether a member is set that the discriminator does not choose.
func (u *union) stale(v document.Node) bool {
	chosen := u.chosen(v)
	for i := range u.members {
		if m := &u.members[i]; m.value != chosen && m.of(v).Valid() {
			return true
		}
	}
	return false
}

// Stale reports whether a member of a union is set that the union's discriminator does not choose: of an update of such
// an object [Schema.Carry] may make a valid one.
func (s *Schema) Stale(obj document.Node) bool { return hasUnions(s.root) && s.root.stale(obj) }

func (s *Shape) stale(v document.Node) bool {
	if v.Kind() == document.Object {
		for _, u := range s.extra.unions {
			if u.discriminated && u.stale(v) {
				return true
			}
		}
	}
	stale := false
	s.descend(v, document.Node{}, hasUnions, func(child *Shape, v, _ document.Node) { stale = stale || child.stale(v) })
	return stale
}

// clearStale takes out members of unions that an update of the discriminator makes stale and that it leaves as they
// were.
func clearStale(d *document.Document, s *Shape, v, old document.Node) {
	if v.Kind() == document.Object && old.Kind() == document.Object {
		for _, u := range s.extra.unions {
			if u.discriminated && u.chosen(v) != u.chosen(old) {
				u.clear(d, v, old)
			}
		}
	}
	s.descend(v, old, hasUnions, func(child *Shape, v, old document.Node) {
		if old.Valid() {
			clearStale(d, child, v, old)
		}
	})
}

func (u *union) clear(d *document.Document, v, old document.Node) {
	chosen := u.chosen(v)
	for i := range u.members {
		m := &u.members[i]
		now, before := m.of(v), m.of(old)
		if m.value != chosen && now.Valid() && before.Valid() && !hasImmutable(m.shape) &&
			sameValue(m.shape, now, before) {
			d.Remove(now)
		}
	}
}

// unions checks the unions of a value and of those in it. A union that an update leaves as it was is not checked, as
// Kubernetes has it.
func (w *validator) unions(s *Shape, v, old document.Node) {
	if v.Kind() == document.Object {
		for _, u := range s.extra.unions {
			if old.Kind() != document.Object || u.differs(v, old) {
				u.check(w, v)
			}
		}
	}
	s.descend(v, old, hasUnions, func(child *Shape, v, old document.Node) { w.unions(child, v, old) })
}

// differs reports whether the discriminator, or which members are set, is not the same.
func (u *union) differs(v, old document.Node) bool {
	for i := range u.members {
		if u.members[i].of(v).Valid() != u.members[i].of(old).Valid() {
			return true
		}
	}
	return u.discriminated && u.chosen(v) != u.chosen(old)
}

// check checks that no two members are set and, if there is a discriminator, that the one is that it chooses.
func (u *union) check(w *validator, v document.Node) {
	var first, second *unionMember
	for i := range u.members {
		switch m := &u.members[i]; {
		case !m.of(v).Valid():
		case first == nil:
			first = m
		case second == nil:
			second = m
		}
	}
	chosen := u.chosen(v)
	switch {
	case u.discriminated && chosen != "":
		u.checkChosen(w, v, chosen)
	case second != nil:
		path := w.path(v)
		if path == nil {
			path = field.NewPath(second.name.String())
		}
		w.refuse(v, field.Invalid(path, wording.Omitted, "must have at most one of "+wording.Among(u.names)))
	case u.discriminated && first != nil:
		w.refuse(v, field.Required(w.path(v).Child(u.discriminator.String()), "must be '"+first.value+"' where `"+
			first.name.String()+"` is set"))
	}
}

// checkChosen checks that the member is set that the discriminator chooses, and no other.
func (u *union) checkChosen(w *validator, v document.Node, chosen string) {
	for i := range u.members {
		m := &u.members[i]
		n := m.of(v)
		where := "where `" + u.discriminator.String() + "` is '" + m.value + "'"
		switch {
		case m.value != chosen && n.Valid():
			w.refuse(n, field.Forbidden(w.path(v).Child(m.name.String()), "may only be set "+where))
		case m.value == chosen && !n.Valid() && !m.optional:
			w.refuse(v, field.Required(w.path(v).Child(m.name.String()), "must be set "+where))
		}
	}
}

func (w *validator) refuse(at document.Node, err *field.Error) {
	if !w.fails() {
		w.add(at, err)
	}
}

// extended checks a value and those in it against the gateway's own keywords.
func (w *validator) extended(s *Shape, v, old document.Node) {
	if s.extra == nil {
		return
	}
	if s.extra.hasUnions {
		w.unions(s, v, old)
	}
	if s.extra.hasImmutable && old.Valid() {
		w.changedValues(s, v, old)
	}
}
