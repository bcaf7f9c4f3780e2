package mutation

import (
	"fmt"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// A kindOfValue is a kind that a location gives the value at one of its steps.
type kindOfValue uint8

const (
	anyValue kindOfValue = iota
	objectValue
	listValue
	setValue
	stringValue
)

// A setter makes the value at the end of a location.
type setter interface {
	// set changes the member of an object, which may be there already, and reports whether that
	// makes a difference.
	set(w *walk, object document.Node, s *step) (changed bool, err error)
	// fresh appends the value of a member that is not there; false to leave the member out.
	fresh(w *walk, dst []byte) (json []byte, isSet bool)
	// item is the value for an item of a list; not ok if it cannot be one.
	item() (value document.Node, ok bool)
	// kind is the kind of the field that the value belongs in; isFinal reports whether no location may
	// lead through it.
	kind() kindOfValue
	isFinal() bool
}

// A walk leads along a mutator's location, in one object.
type walk struct {
	attributes *admission.Attributes
	document   *document.Document
	mutator    *Mutator
	buffer     []byte
	// before is called before the first edit of a pass, if it is set.
	before func()
}

// begin is called before each edit.
func (w *walk) begin() {
	if w.before != nil {
		w.before()
		w.before = nil
	}
}

func (w *walk) name() string { return w.metadata("name") }

func (w *walk) namespace() string { return w.attributes.Info.ObjectNamespace() }

func (w *walk) metadata(member string) string {
	metadata, _ := w.document.Root().Get("metadata")
	n, _ := metadata.Get(member)
	return n.Str()
}

// at is the step of the mutator's location at a depth.
func (w *walk) at(depth int) *step { return &w.mutator.path[depth] }

func (w *walk) isLast(depth int) bool { return depth == len(w.mutator.path)-1 }

// mutate changes what the location leads to from a value on, and reports whether that makes a
// difference.
func (w *walk) mutate(v document.Node, depth int) (changed bool, err error) {
	if w.at(depth).list {
		return w.mutateItems(v, depth)
	}
	return w.mutateMember(v, depth)
}

func (w *walk) mutateMember(object document.Node, depth int) (changed bool, err error) {
	s := w.at(depth)
	if object.Kind() != document.Object {
		return false, w.mismatch(depth, "an object", object)
	}
	next, exists := object.Lookup(s.member)
	switch {
	case !w.mutator.allows(depth, exists):
		return false, nil
	case w.isLast(depth):
		if changed, err = w.mutator.setter.set(w, object, s); err != nil {
			err = fmt.Errorf("%s %w", textOf(w.mutator.path), err)
		}
		return changed, err
	case exists:
		return w.mutate(next, depth+1)
	}
	value, isSet, err := w.fresh(w.buffer[:0], depth+1)
	w.buffer = value[:0]
	if err != nil || !isSet {
		return false, err
	}
	w.begin()
	w.document.Set(object, s.name, value)
	return true, nil
}

func (w *walk) mutateItems(list document.Node, depth int) (changed bool, err error) {
	s := w.at(depth)
	switch {
	case list.Kind() != document.Array:
		return false, w.mismatch(depth, "a list", list)
	case w.isLast(depth):
		return w.setItem(list, depth)
	case s.each && !w.mutator.allows(depth, true):
		return false, nil
	}
	found := s.each
	for item := list.First(); item.Valid(); item = item.Next() {
		if !s.each {
			if !s.selects(item) {
				continue
			}
			if !w.mutator.allows(depth, true) {
				return changed, nil
			}
		}
		found = true
		one, err := w.mutate(item, depth+1)
		if err != nil {
			return false, err
		}
		changed = changed || one
	}
	if found || !w.mutator.allows(depth, false) {
		return changed, nil
	}
	value, isSet, err := w.freshItem(w.buffer[:0], depth)
	w.buffer = value[:0]
	if err != nil || !isSet {
		return false, err
	}
	w.begin()
	w.document.Append(list, value)
	return true, nil
}

// setItem sets an item itself, at the end of a location.
func (w *walk) setItem(list document.Node, depth int) (changed bool, err error) {
	s := w.at(depth)
	value, _ := w.mutator.setter.item()
	for item := list.First(); item.Valid(); item = item.Next() {
		if item.Kind() != document.Object {
			return false, w.mismatch(depth+1, "an object", item)
		}
		if !s.selects(item) {
			continue
		}
		if !w.mutator.allows(depth, true) || document.EqualNodes(item, value) {
			return false, nil
		}
		w.begin()
		w.document.Replace(item, value.Raw())
		return true, nil
	}
	if !w.mutator.allows(depth, false) {
		return false, nil
	}
	w.begin()
	w.document.Append(list, value.Raw())
	return true, nil
}

// fresh appends an object or a list that is not there, with what the location from the depth on makes
// in it; false if that is nothing.
func (w *walk) fresh(dst []byte, depth int) (json []byte, isSet bool, err error) {
	s := w.at(depth)
	if !s.list {
		return w.freshObject(append(dst, '{'), depth)
	}
	if s.each || !w.mutator.allows(depth, false) {
		return dst, false, nil
	}
	dst = append(dst, '[')
	if w.isLast(depth) {
		value, _ := w.mutator.setter.item()
		return append(value.AppendRaw(dst), ']'), true, nil
	}
	if dst, isSet, err = w.freshItem(dst, depth); !isSet {
		return dst, false, err
	}
	return append(dst, ']'), true, nil
}

// freshItem appends an item with the key of the step at the depth.
func (w *walk) freshItem(dst []byte, depth int) (json []byte, isSet bool, err error) {
	s, next := w.at(depth), w.at(depth+1)
	if next.name == s.name {
		return w.insideKey(dst, depth+1)
	}
	dst = append(document.AppendString(append(dst, '{'), s.name), ':')
	return w.freshObject(append(append(dst, s.key()...), ','), depth+1)
}

// insideKey is for a location that leads on into the key of a new item, which is no object.
func (w *walk) insideKey(dst []byte, depth int) ([]byte, bool, error) {
	if !w.mutator.allows(depth, true) {
		return dst, false, nil
	}
	return dst, false, fmt.Errorf("%s must be an object or a list, not the key of an item",
		textOf(w.mutator.path[:depth+1]))
}

// freshObject appends the member that the location leads to, and the end of its object.
func (w *walk) freshObject(dst []byte, depth int) (json []byte, isSet bool, err error) {
	s := w.at(depth)
	if !w.mutator.allows(depth, false) {
		return dst, false, nil
	}
	before := len(dst)
	dst = append(document.AppendString(dst, s.name), ':')
	if !w.isLast(depth) {
		if dst, isSet, err = w.fresh(dst, depth+1); !isSet {
			return dst, false, err
		}
		return append(dst, '}'), true, nil
	}
	if dst, isSet = w.mutator.setter.fresh(w, dst); !isSet {
		// As in Gatekeeper the object is made all the same.
		if dst = dst[:before]; dst[before-1] == ',' {
			dst = dst[:before-1]
		}
	}
	return append(dst, '}'), true, nil
}

func (w *walk) mismatch(depth int, expected string, v document.Node) error {
	return fmt.Errorf("%s must be %s, not %s", textOf(w.mutator.path[:depth]), expected, v.Kind().WithArticle())
}
