package merge

import (
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Apply merges an apply configuration, a value of another document, into the
// document: what it gives is set, members and the items of associative lists are
// merged one by one, and nothing is removed. Lists and objects that are single
// values may not be in it, since all that it leaves out of them would be lost.
// With an error nothing is changed; the texts are Kubernetes'.
func (t *Type) Apply(d *document.Document, configuration document.Node) (changed bool, err error) {
	if err := t.Check(configuration); err != nil {
		return false, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if atomics := t.atomics(configuration); len(atomics) > 0 {
		return false, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s",
			strings.Join(atomics, ", "))
	}
	if err := t.checkOriginal(d.Root()); err != nil {
		return false, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	a := applier{d: d}
	a.value(t, d.Root(), configuration)
	return a.changed, nil
}

// atomics are the paths of lists and objects in a configuration that are single
// values. What is in members that no type names is not looked at, as in
// Kubernetes.
func (t *Type) atomics(n document.Node) []string {
	f := atomicFinder{}
	f.value(t, n)
	if f.more > 0 {
		f.found = append(f.found, fmt.Sprintf("and %d more", f.more))
	}
	return f.found
}

type atomicFinder struct {
	path  []byte
	found []string
	more  int
}

func (f *atomicFinder) value(t *Type, n document.Node) {
	length := len(f.path)
	switch kind := n.Kind(); {
	case kind == document.Object && t.Object != nil:
		if t.Object.Atomic {
			f.add()
		}
		for m := n.First(); m.Valid(); m = m.Next() {
			if field, ok := t.Object.field(m); ok {
				f.path = appendName(f.path[:length], m.Key())
				f.value(field, m)
			}
		}
	case kind == document.Array && t.List != nil:
		if t.List.Relation == Atomic {
			f.add()
		}
		position := 0
		for item := n.First(); item.Valid(); item = item.Next() {
			f.path = fmt.Appendf(f.path[:length], "[%d]", position)
			f.value(t.List.Items, item)
			position++
		}
	}
	f.path = f.path[:length]
}

func (f *atomicFinder) add() {
	if len(f.found) == maxProblems {
		f.more++
		return
	}
	f.found = append(f.found, string(f.path))
}

// applier merges values that were checked.
type applier struct {
	d       *document.Document
	changed bool
}

// value merges right into left. Both are there.
func (a *applier) value(t *Type, left, right document.Node) {
	switch kind := right.Kind(); {
	case t.Object != nil && (kind == document.Object || kind == document.Null):
		a.object(t.Object, left, right)
	case t.List != nil && (kind == document.Array || kind == document.Null && t.Scalar == None):
		a.list(t.List, left, right)
	default:
		a.replace(left, right)
	}
}

// replace sets a value unless it is the same already.
func (a *applier) replace(left, right document.Node) {
	if !document.EqualNodes(left, right) {
		a.d.Replace(left, right.Raw())
		a.changed = true
	}
}

func (a *applier) object(o *Object, left, right document.Node) {
	switch there, given := length(left, document.Object), length(right, document.Object); {
	case o.Atomic, there == 0 && given == 0:
		a.replace(left, right)
		return
	case right.Kind() != document.Object:
		return // null leaves an object as it is
	case left.Kind() != document.Object:
		a.replace(left, right)
		return
	}
	for m := right.First(); m.Valid(); m = m.Next() {
		if old, ok := left.Get(m.Key()); ok {
			a.value(o.member(m), old, m)
		} else {
			a.d.Set(left, m.Key(), m.Raw())
			a.changed = true
		}
	}
}

// length is how many members or items a value of that kind has; 0 for values of
// other kinds.
func length(n document.Node, kind document.Kind) int {
	if n.Kind() != kind {
		return 0
	}
	return n.Len()
}

func (a *applier) list(l *List, left, right document.Node) {
	switch there, given := length(left, document.Array), length(right, document.Array); {
	case l.Relation == Atomic, there == 0 && given == 0:
		a.replace(left, right)
		return
	case right.Kind() != document.Array:
		return // null leaves a list as it is
	case left.Kind() != document.Array:
		a.replace(left, right)
		return
	}
	pairs := align(l, left, right)
	for _, p := range pairs {
		if p.left.Valid() && p.right.Valid() {
			a.value(l.Items, p.left, p.right)
		}
	}
	a.arrange(left, pairs)
}

// A pair is an item of a merged list: what is there, what is given, or both.
type pair struct{ left, right document.Node }

// result is the value that the pair has once it is merged.
func (p pair) result() document.Node {
	if p.left.Valid() {
		return p.left
	}
	return p.right
}

// arrange gives a list these items in this order. If they are its own items and new ones behind
// them, nothing else of it is touched.
func (a *applier) arrange(list document.Node, pairs []pair) {
	at := list.First()
	i := 0
	for ; i < len(pairs) && at.Valid() && pairs[i].left == at; i++ {
		at = at.Next()
	}
	if !at.Valid() {
		added := true
		for _, p := range pairs[i:] {
			added = added && !p.left.Valid()
		}
		if added {
			for _, p := range pairs[i:] {
				a.d.Append(list, p.right.Raw())
				a.changed = true
			}
			return
		}
	}
	raw := []byte{'['}
	for i, p := range pairs {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = p.result().AppendRaw(raw)
	}
	a.d.Replace(list, append(raw, ']'))
	a.changed = true
}
