package graph

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Check checks a value.
func (s *Schema) Check(v document.Node, use Use) Result { return s.check(v, use, false) }

// check checks a value, by a walk alone if it is said to be wrong.
func (s *Schema) check(v document.Node, use Use, isWrong bool) Result {
	if s.root.isPlain && s.root.accepts.has(v.Kind()) {
		return Result{}
	}
	w := walks.Get().(*walk)
	defer w.release()
	w.use, w.except, w.files, w.top, w.budget = use, s.except, s.files, v, baseBudget+valueBudget*v.Document().Values()
	w.isWrong = isWrong
	w.check(s.root, v, none)
	if w.budget < 0 {
		w.failures, w.more = nil, 0
		return Result{Failures: []Failure{{Err: field.Invalid(nil, wording.Omitted, tooMuch), At: v}}}
	}
	if len(w.failures) == 0 {
		return Result{}
	}
	return Result{Failures: append([]Failure(nil), w.failures...), More: w.more}
}

const tooMuch = "must take less work to validate: the alternatives of the schema that the value may match are too many"

// check reports whether a schema takes a value, and unless it probes adds what is wrong. What it
// finds to describe of the members or items is marked.
func (w *walk) check(s *node, v document.Node, m markers) bool {
	kind := v.Kind()
	if s.isPlain && s.accepts.has(kind) {
		w.score++
		return true
	}
	if w.mayFit(s, m) {
		return w.direct(s, v)
	}
	if w.budget--; w.budget < 0 {
		return false
	}
	switch {
	case kind == document.Null && s.isNullable:
		return true
	case s.isNever:
		if !w.fails() {
			w.add(v, wording.Not(w.path(v)))
		}
		return false
	case s.isLoop && w.isActive(s, v):
		return true
	}
	ok := w.typed(s, v, kind)
	if !ok && w.probing > 0 {
		return false
	}
	for e := s.enum; e != nil; e = e.And {
		switch {
		case w.listed(e, v):
			w.score += 8 // its value is likely to differ between alternatives
		case w.probing > 0:
			return false
		default:
			ok = false
			if !w.fails() {
				w.add(v, wording.Enum(w.path(v), v, e.Shown))
			}
		}
	}
	switch {
	case s.isFramed:
		w.frames = append(w.frames, frame{schema: s, node: v})
		ok = w.inside(s, v, kind, m, ok)
		w.frames = w.frames[:len(w.frames)-1]
	case kind == document.String && s.text != nil:
		ok = w.text(s.text, v) && ok
	case kind == document.Number && s.number != nil:
		ok = w.number(s.number, v) && ok
	}
	if ok {
		w.score++
	}
	return ok
}

// typed checks the type.
func (w *walk) typed(s *node, v document.Node, kind document.Kind) bool {
	if s.accepts.has(kind) && (!s.isWhole || kind != document.Number || v.IsWhole()) {
		w.score++
		return true
	}
	if !w.fails() {
		w.add(v, wording.Type(w.path(v), v, s.typeName))
	}
	return false
}

// inside checks what a schema says beside type and enumeration.
func (w *walk) inside(s *node, v document.Node, kind document.Kind, m markers, ok bool) bool {
	outer := m
	var unevaluated *node
	switch {
	case kind == document.Object && s.object != nil:
		unevaluated = s.object.unevaluated
	case kind == document.Array && s.list != nil:
		unevaluated = s.list.unevaluated
	}
	if unevaluated != nil {
		m = w.newMarkers(v.Len())
	}
	if s.logic != nil {
		if ok = w.logic(s.logic, v, m) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	switch kind {
	case document.String:
		if s.text != nil {
			ok = w.text(s.text, v) && ok
		}
	case document.Number:
		if s.number != nil {
			ok = w.number(s.number, v) && ok
		}
	case document.Object:
		if s.object != nil {
			ok = w.object(s.object, v, m) && ok
		}
	case document.Array:
		if s.list != nil {
			ok = w.list(s.list, v, m) && ok
		}
	}
	if unevaluated != nil {
		ok = (ok || w.probing == 0) && w.rest(unevaluated, v, m) && ok
		w.markAll(outer, v.Len())
		w.marks = w.marks[:m]
	}
	return ok
}

// rest checks the members or items that nothing else of the schema describes.
func (w *walk) rest(s *node, v document.Node, m markers) bool {
	ok, i := true, 0
	for c := v.Children(); c.Valid(); c.Next() {
		if !w.isMarked(m, i) {
			ok = w.other(s, v, c.Node(), i) && ok
			if !ok && w.probing > 0 {
				return false
			}
		}
		i++
	}
	return ok
}

// other checks a member or item by a schema for those that are not described.
func (w *walk) other(s *node, of, v document.Node, index int) bool {
	w.frames[len(w.frames)-1].index = index
	if !s.isNever {
		return w.check(s, v, none)
	}
	if !w.fails() {
		if of.Kind() == document.Object {
			w.add(v, wording.Closed(w.path(of), v.Key()))
		} else {
			w.add(v, field.Invalid(w.path(v), wording.ValueOf(v),
				"may not be set: the schema allows no other items than its own"))
		}
	}
	return false
}

// isActive reports whether the schema is being applied to the value.
func (w *walk) isActive(s *node, v document.Node) bool {
	for i := len(w.frames) - 1; i >= 0 && w.frames[i].node == v; i-- {
		if w.frames[i].schema == s {
			return true
		}
	}
	return false
}

// isFile reports whether a text is the name of a file.
func (w *walk) isFile(v document.Node) bool {
	if w.files == nil {
		return false
	}
	for of := v.Parent(); of.Valid(); v, of = of, of.Parent() {
		if of == w.top {
			return w.files.Member(v) >= 0
		}
	}
	return false
}

// broken adds what is wrong with a value by some keywords, and reports whether nothing is.
func (w *walk) broken(b keyword.Broken, failure keyword.Failures, v document.Node) bool {
	for rest := b; rest != 0; rest = rest.Rest() {
		if !w.fails() {
			w.add(v, failure(rest.First(), w.path(v), v))
		}
	}
	return b == 0
}

func (w *walk) text(t *keyword.Text, v document.Node) bool {
	return w.isFile(v) || w.broken(t.Broken(w.str(v)), t.Failure, v)
}

func (w *walk) number(r *keyword.Number, v document.Node) bool {
	return w.broken(r.Broken(v), r.Failure, v)
}

// listed reports whether the value is one of an enumeration.
func (w *walk) listed(e *keyword.Enum, v document.Node) bool {
	if v.Kind() == document.String {
		return e.HasString(w.str(v))
	}
	return e.Has(v)
}
