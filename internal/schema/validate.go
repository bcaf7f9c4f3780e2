package schema

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/wording"
	"github.com/admission-gateway/gateway/internal/status"
)

// validator is one walk of Validate.
type validator struct {
	locator
	failures failures
	probing  int  // nesting of walks that only ask whether, not what
	failed   bool // by the walk that probes
	weighing int  // nesting of walks whose count of matches matters
	update   bool // there is an old object
	trusting bool // the marks of values come from their shapes
	changes  int  // places found to differ from their old value
	items    list.Items
	repeated []document.Node
	decoded  []byte // of str
}

var validators = sync.Pool{New: func() any { return &validator{} }}

// value checks a value against its shape. old is the value before an update, if the two are known
// to be the same thing; it is invalid elsewhere.
//
// The result counts what matched, by go-openapi's measure: it says which branch of anyOf or oneOf comes closest.
func (w *validator) value(s *Shape, v, old document.Node) int {
	var begin mark
	changes := w.changes
	if w.update {
		begin = w.failures.mark()
	}
	kind := v.Kind()
	matched := w.typed(s, v, kind)
	if kind == document.Null {
		if s.enum != nil {
			w.enum(s.enum, v, kind)
		}
	} else {
		if s.logic != nil {
			matched += w.logic(s.logic, v)
		}
		matched += 4 // of what go-openapi counts whatever the value is
		switch kind {
		case document.String:
			matched++
			if s.text != nil {
				matched += w.text(s.text, v)
			}
		case document.Number:
			matched += 2
			if s.number != nil {
				w.broken(s.number.Broken(v), s.number.Failure, v)
			}
		case document.Array:
			matched += 2 + w.list(s, v, old)
		case document.Object:
			matched += 1 + w.object(s, v, old)
		}
		if s.enum != nil {
			w.enum(s.enum, v, kind)
		}
	}
	if w.update && w.probing == 0 && old.Valid() && w.failures.mark() != begin {
		w.ratchet(s, v, old, begin, changes)
	}
	return matched
}

// fits reports at a glance that nothing can be wrong with a value: its type is right, and the shape
// asks for no more.
func (s *Shape) fits(v document.Node) bool {
	return s.checks == checkNothing || s.checks == checkType && s.accepts[v.Kind()] == match
}

// typed checks the type.
func (w *validator) typed(s *Shape, v document.Node, kind document.Kind) int {
	switch s.accepts[kind] {
	case match:
		if kind == document.Null {
			return 1
		}
		return int(s.typeCount)
	case integral:
		if compare.NumberOf(v).Integral() {
			return int(s.typeCount)
		}
	}
	w.mistyped(s, v)
	if kind == document.Null {
		return 0
	}
	return 1
}

func (w *validator) mistyped(s *Shape, v document.Node) {
	if w.fails() {
		return
	}
	w.add(v, wording.Type(w.path(v), v, s.typeName))
}

// fails notes that something is wrong, and reports whether that is all that matters.
func (w *validator) fails() bool {
	if w.probing > 0 {
		w.failed = true
		return true
	}
	return w.failures.full()
}

// done reports whether a walk that probes has its answer.
func (w *validator) done() bool { return w.probing > 0 && w.failed }

func (w *validator) add(at document.Node, err *field.Error) {
	w.failures.add(failure{err: err, at: at.Index()})
}

// broken adds what is wrong with a value by some keywords.
func (w *validator) broken(b keyword.Broken, failure keyword.Failures, v document.Node) {
	for ; b != 0; b = b.Rest() {
		if !w.fails() {
			w.add(v, failure(b.First(), w.path(v), v))
		}
	}
}

func (w *validator) enum(e *keyword.Enum, v document.Node, kind document.Kind) {
	if kind == document.String && e.HasString(w.str(v)) || kind != document.String && e.Has(v) || w.fails() {
		return
	}
	w.add(v, wording.Enum(w.path(v), v, e.Shown))
}

func (w *validator) text(t *keyword.Text, v document.Node) (matched int) {
	w.broken(t.Broken(w.str(v)), t.Failure, v)
	if t.Format != nil {
		return 1
	}
	return 0
}

func (w *validator) list(s *Shape, v, old document.Node) (matched int) {
	if size := s.list.size; size != nil {
		w.broken(size.Broken(v.Len()), size.Failure, v)
	}
	if s.list.kind != nil && !w.done() {
		w.distinct(s.list.kind, v)
	}
	if s.list.items == nil || s.list.items.checks == checkNothing && w.weighing == 0 || w.done() {
		return 0
	}
	if w.update && old.Valid() {
		previous := s.list.kind.Predecessors(old)
		for n := v.First(); n.Valid() && !w.done(); n = n.Next() {
			if !w.passes(s.list.items, n) {
				matched += w.value(s.list.items, n, previous.Of(n))
			}
		}
		return matched
	}
	for n := v.First(); n.Valid() && !w.done(); n = n.Next() {
		if !w.passes(s.list.items, n) {
			matched += w.value(s.list.items, n, document.Node{})
		}
	}
	return matched
}

// distinct checks what list types set and map promise.
func (w *validator) distinct(l *list.Type, v document.Node) {
	var misfit document.Node
	w.repeated, misfit = l.Repeats(w.repeated[:0], v, &w.items)
	if misfit.Valid() {
		w.failures.listTypes = true
		if !w.fails() {
			w.failures.add(failure{err: wording.MapItem(w.path(misfit), misfit), at: misfit.Index(), class: ofListType})
		}
		return
	}
	for _, n := range w.repeated {
		w.failures.listTypes = true
		if w.fails() {
			break
		}
		w.failures.add(failure{err: duplicateFailure(w.path(n), l, n), at: n.Index(), class: ofListType})
	}
}

// duplicateFailure shows the item of a set, and the keys of an item of a list of type map.
func duplicateFailure(path *field.Path, l *list.Type, v document.Node) *field.Error {
	if l.Keys == nil {
		return status.Duplicate(path.String(), wording.Shown(v))
	}
	keys := map[string]any{}
	for _, name := range l.Keys {
		if value, found := v.Lookup(name); found {
			keys[name.String()] = wording.Shown(value)
		}
	}
	return status.Duplicate(path.String(), keys)
}

func (w *validator) object(s *Shape, v, old document.Node) (matched int) {
	if size := s.object.size; size != nil {
		w.broken(size.Broken(v.Len()), size.Failure, v)
	}
	if s.envelope == embeddedEnvelope && !w.done() {
		w.embedded(v)
	}
	var seen uint64
	if len(s.object.properties) > 0 || s.object.additional != nil || s.object.others == othersRefused {
		seen, matched = w.members(s, v, old)
	}
	if seen&s.object.demanded == s.object.demanded {
		return matched
	}
	for _, name := range s.object.required {
		if w.done() {
			break
		}
		if _, found := v.Lookup(name); !found {
			w.missing(v, name.String(), ofSchema)
		}
	}
	return matched
}

// members walks the members of an object. seen are the bits of the members that are there.
func (w *validator) members(s *Shape, v, old document.Node) (seen uint64, matched int) {
	known := w.update && old.Kind() == document.Object
	for c := v.Children(); c.Valid() && !w.done(); c.Next() {
		m, child := c.Node(), s.object.additional
		if p := s.PropertyAt(&c); p != nil {
			seen |= p.Bit()
			child = p.Shape
		} else if s.object.others == othersRefused {
			if !w.fails() {
				w.add(m, wording.Closed(w.path(v), m.Key()))
			}
			continue
		}
		if child == nil || w.passes(child, m) {
			continue
		}
		var before document.Node
		if known {
			if name := m.Key(); v != w.top || roleOf(name) != typeMeta {
				before, _ = old.Get(name)
			}
		}
		matched += w.value(child, m, before)
	}
	return seen, matched
}
