package schema

import (
	"math"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
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
	items    keyedItems
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
			w.enum(s, v, kind)
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
				w.number(s.number, v)
			}
		case document.Array:
			matched += 2 + w.list(s, v, old)
		case document.Object:
			matched += 1 + w.object(s, v, old)
		}
		if s.enum != nil {
			w.enum(s, v, kind)
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

func (w *validator) enum(s *Shape, v document.Node, kind document.Kind) {
	if s.enum.has(v, kind) || w.fails() {
		return
	}
	w.add(v, wording.Enum(w.path(v), v, s.enum.shown))
}

func (w *validator) text(t *textRules, v document.Node) (matched int) {
	s := w.str(v)
	if t.takes(s) {
		if t.format != nil {
			return 1
		}
		return 0
	}
	if t.mayMisfit(int64(len(s))) {
		length := int64(utf8.RuneCountInString(s))
		if t.maxLength >= 0 && length > t.maxLength && !w.fails() {
			w.add(v, wording.MaxLength(w.path(v), t.maxLength))
		}
		if length < t.minLength && !w.fails() {
			w.add(v, wording.MinLength(w.path(v), v, t.minLength))
		}
	}
	if t.pattern != nil && !w.done() && !t.pattern.Match(s) && !w.fails() {
		w.add(v, wording.Pattern(w.path(v), v, t.pattern.String()))
	}
	if t.format != nil {
		matched = 1
		if !w.done() && !t.format.Matches(s) && !w.fails() {
			w.add(v, wording.Format(w.path(v), v, t.format.Name))
		}
	}
	return matched
}

func (w *validator) number(r *numberRules, v document.Node) {
	n := compare.NumberOf(v)
	if r.takes(n) {
		return
	}
	if r.low != math.MinInt64 && (n.Compare(float64(r.low)) < 0 || n.Compare(float64(r.high)) > 0) && !w.fails() {
		w.add(v, wording.Range(w.path(v), v, r.low, r.high))
	}
	if r.single && !compare.FitsFloat32(n.Float()) && !w.fails() {
		w.add(v, wording.Single(w.path(v), v))
	}
	if b := r.minimum; b != nil {
		if c := n.Compare(b.value); (c < 0 || c == 0 && b.exclusive) && !w.fails() {
			w.add(v, wording.Minimum(w.path(v), v, b.value, b.exclusive))
		}
	}
	if b := r.maximum; b != nil {
		if c := n.Compare(b.value); (c > 0 || c == 0 && b.exclusive) && !w.fails() {
			w.add(v, wording.Maximum(w.path(v), v, b.value, b.exclusive))
		}
	}
	if f := r.multipleOf; f != nil && !f.divides(n) && !w.fails() {
		w.add(v, wording.MultipleOf(w.path(v), v, f.value))
	}
}

func (w *validator) list(s *Shape, v, old document.Node) (matched int) {
	if size := s.list.size; size != nil {
		n := int64(v.Len())
		if n < size.least && !w.fails() {
			w.add(v, wording.MinItems(w.path(v), n, size.least))
		}
		if size.most >= 0 && n > size.most && !w.fails() {
			w.add(v, wording.MaxItems(w.path(v), n, size.most))
		}
	}
	if s.list.kind != nil && !w.done() {
		w.distinct(s.list.kind, v)
	}
	if s.list.items == nil || s.list.items.checks == checkNothing && w.weighing == 0 || w.done() {
		return 0
	}
	if w.update && old.Valid() {
		previous := s.list.kind.predecessors(old)
		for n := v.First(); n.Valid() && !w.done(); n = n.Next() {
			if !w.passes(s.list.items, n) {
				matched += w.value(s.list.items, n, previous.of(n))
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
func (w *validator) distinct(l *listType, v document.Node) {
	var misfit document.Node
	w.repeated, misfit = l.repeats(w.repeated[:0], v, &w.items)
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

func (w *validator) object(s *Shape, v, old document.Node) (matched int) {
	if size := s.object.size; size != nil {
		n := int64(v.Len())
		if n < size.least && !w.fails() {
			w.add(v, wording.MinProperties(w.path(v), n, size.least))
		}
		if size.most >= 0 && n > size.most && !w.fails() {
			w.add(v, wording.MaxProperties(w.path(v), n, size.most))
		}
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
