package graph

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// Most values are right, and most schemas are direct: types, bounds, patterns, enumerations, members
// and items, and other such schemas that hold too. For them fits is a short way to say that a value
// is right. What is wrong, and all that other keywords ask for, is said by the walk in check.go,
// which agrees: FuzzFits compares them.

// fits reports whether a direct schema takes the value at the cursor. It is only asked if nothing
// else depends on what the walk notes on its way.
func (w *walk) fits(s *node, c document.Cursor) bool {
	kind := c.Kind()
	switch {
	case s.isPlain && s.accepts.has(kind), kind == document.Null && s.isNullable:
		return true
	case !s.accepts.has(kind), s.isNever, s.isWhole && kind == document.Number && !c.Node().IsWhole():
		return false
	}
	if w.budget--; w.budget < 0 {
		return false
	}
	for e := s.enum; e != nil; e = e.And {
		if !w.listed(e, c.Node()) {
			return false
		}
	}
	if s.logic != nil {
		for _, other := range s.logic.all {
			if !w.fits(other, c) {
				return false
			}
		}
	}
	switch {
	case kind == document.String && s.text != nil:
		return s.text.Takes(w.str(c.Node()))
	case kind == document.Number && s.number != nil:
		return s.number.Broken(c.Node()) == 0
	case kind == document.Object && s.object != nil:
		return w.fitsObject(s.object, c)
	case kind == document.Array && s.list != nil:
		return w.fitsList(s.list, c)
	}
	return true
}

func (w *walk) fitsObject(o *objectRules, at document.Cursor) bool {
	if w.misses(&o.size, at.Len()) != 0 {
		return false
	}
	required := o.required
	if w.use == Partial {
		required = 0
	}
	if !o.walks {
		return required == 0
	}
	for c := at.Children(); c.Valid(); c.Next() {
		s := o.additional
		if i := c.Find(&o.names); i >= 0 {
			p := &o.properties[i]
			if p.isRequired {
				required--
			}
			if p.schema != nil {
				s = p.schema
			}
		}
		if s == nil || s.isPlain && s.accepts.has(c.Kind()) && !s.isWriteOnly {
			continue
		}
		if s.isWriteOnly && w.use == Answers || !w.fits(s, c) {
			return false
		}
	}
	return required <= 0
}

func (w *walk) fitsList(l *listRules, at document.Cursor) bool {
	if l.size.Broken(at.Len()) != 0 {
		return false
	}
	if l.items == nil {
		return true
	}
	for c := at.Children(); c.Valid(); c.Next() {
		if !w.fits(l.items, c) {
			return false
		}
	}
	return true
}

// mayFit reports whether fits may be asked about a value.
func (w *walk) mayFit(s *node, m markers) bool {
	return s.isDirect && m == none && w.probing == 0 && w.choosing == 0 && w.explaining == 0 && !w.isWrong &&
		w.except == nil && w.files == nil
}

// direct is check for a direct schema. What is wrong is said by a walk over the value, in which
// fits is not asked again: each value is looked at twice at most.
func (w *walk) direct(s *node, v document.Node) bool {
	w.probing++
	fits := w.fits(s, v.Cursor())
	w.probing--
	if fits {
		return true
	}
	w.isWrong = true
	ok := w.check(s, v, none)
	w.isWrong = false
	return ok
}

// isDirectAlone reports whether the schema is direct if the schemas are that it leads to.
func (s *node) isDirectAlone() bool {
	if s.isLoop {
		return false
	}
	if l := s.logic; l != nil && (len(l.groups) > 0 || len(l.not) > 0 || len(l.choices) > 0 || len(l.dynamic) > 0 ||
		l.condition != nil) {
		return false
	}
	if o := s.object; o != nil && (len(o.patterns) > 0 || o.propertyIs != nil || len(o.dependents) > 0 ||
		o.unevaluated != nil) {
		return false
	}
	l := s.list
	return l == nil || len(l.prefix) == 0 && l.contains == nil && !l.isUnique && l.unevaluated == nil
}

// leadsToIndirect reports whether the schema leads to one that is not direct.
func (s *node) leadsToIndirect() bool {
	isIndirect := func(to *node) bool { return to != nil && !to.isDirect && !to.isPlain && !to.isNever }
	if s.logic != nil {
		for _, other := range s.logic.all {
			if isIndirect(other) {
				return true
			}
		}
	}
	if s.object != nil {
		for i := range s.object.properties {
			if isIndirect(s.object.properties[i].schema) {
				return true
			}
		}
		if isIndirect(s.object.additional) {
			return true
		}
	}
	return s.list != nil && isIndirect(s.list.items)
}

// markDirect says which of the schemas are direct. Schemas that lead to each other are so together.
func markDirect(made []queued) {
	for _, q := range made {
		q.schema.isDirect = q.schema.isDirectAlone()
	}
	for isChanged := true; isChanged; {
		isChanged = false
		for i := len(made) - 1; i >= 0; i-- { // mostly from the inner ones to the outer ones
			if s := made[i].schema; s.isDirect && s.leadsToIndirect() {
				s.isDirect, isChanged = false, true
			}
		}
	}
}
