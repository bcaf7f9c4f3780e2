package mutation

import (
	"fmt"

	"github.com/admission-gateway/gateway/internal/document"
)

// assign sets a constant.
type assign struct{ value document.Node }

func (a assign) set(w *walk, object document.Node, s *step) (bool, error) {
	if now, exists := object.Lookup(s.member); exists && document.EqualNodes(now, a.value) {
		return false, nil
	}
	w.begin()
	w.document.Set(object, s.name, a.value.Raw())
	return true, nil
}

func (a assign) fresh(_ *walk, dst []byte) ([]byte, bool) { return a.value.AppendRaw(dst), true }
func (a assign) item() (document.Node, bool)              { return a.value, true }
func (a assign) kind() kindOfValue                        { return anyValue }
func (a assign) isFinal() bool                            { return false }

// copyMetadata sets the name or the namespace of the object.
type copyMetadata struct{ namespace bool }

func (c copyMetadata) text(w *walk) string {
	if c.namespace {
		return w.namespace()
	}
	return w.name()
}

func (c copyMetadata) set(w *walk, object document.Node, s *step) (bool, error) {
	text := c.text(w)
	if now, exists := object.Lookup(s.member); exists && now.Is(text) {
		return false, nil
	}
	w.begin()
	w.document.SetString(object, s.name, text)
	return true, nil
}

func (c copyMetadata) fresh(w *walk, dst []byte) ([]byte, bool) {
	return document.AppendString(dst, c.text(w)), true
}
func (copyMetadata) item() (document.Node, bool) { return document.Node{}, false }
func (copyMetadata) kind() kindOfValue           { return anyValue }
func (copyMetadata) isFinal() bool               { return false }

// modifySet adds values to a list, or takes them out.
type modifySet struct {
	values document.Node // a list
	prune  bool
}

func (m modifySet) set(w *walk, object document.Node, s *step) (changed bool, err error) {
	list, exists := object.Lookup(s.member)
	switch {
	case !exists && m.prune:
		return false, nil
	case !exists:
		w.begin()
		w.document.Set(object, s.name, m.values.Raw())
		return true, nil
	case list.Kind() != document.Array:
		return false, fmt.Errorf("must be a list, not %s", list.Kind().WithArticle())
	case m.prune:
		return m.remove(w, list), nil
	}
	return m.merge(w, list), nil
}

func (m modifySet) merge(w *walk, list document.Node) (changed bool) {
	for value := m.values.First(); value.Valid(); value = value.Next() {
		if !contains(list, value) {
			w.begin()
			w.document.Append(list, value.Raw())
			changed = true
		}
	}
	return changed
}

func (m modifySet) remove(w *walk, list document.Node) (changed bool) {
	for item := list.First(); item.Valid(); {
		next := item.Next()
		if contains(m.values, item) {
			w.begin()
			w.document.Remove(item)
			changed = true
		}
		item = next
	}
	return changed
}

func contains(list, value document.Node) bool {
	for item := list.First(); item.Valid(); item = item.Next() {
		if document.EqualNodes(item, value) {
			return true
		}
	}
	return false
}

func (m modifySet) fresh(_ *walk, dst []byte) ([]byte, bool) {
	if m.prune {
		return dst, false
	}
	return m.values.AppendRaw(dst), true
}
func (modifySet) item() (document.Node, bool) { return document.Node{}, false }
func (modifySet) kind() kindOfValue           { return setValue }
func (modifySet) isFinal() bool               { return false }
