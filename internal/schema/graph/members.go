package graph

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// object checks the members of an object.
func (w *walk) object(o *objectRules, v document.Node, m markers) bool {
	ok := w.broken(w.misses(&o.size, v.Len()), o.size.Failure, v)
	if !ok && w.probing > 0 {
		return false
	}
	there := 0
	if o.walks {
		if there, ok = w.members(o, v, m, ok); !ok && w.probing > 0 {
			return false
		}
	}
	if there < o.required && w.use != Partial {
		ok = w.required(o, v) && ok
	}
	for i := range o.dependents {
		if !ok && w.probing > 0 {
			return false
		}
		ok = w.dependent(&o.dependents[i], v, m) && ok
	}
	return ok
}

// misses returns the bounds of an object that so many members break.
func (w *walk) misses(size *keyword.Size, n int) keyword.Broken {
	broken := size.Broken(n)
	if w.use == Partial {
		broken &^= keyword.Least
	}
	return broken
}

// members checks each of the members; there is how many of the required ones there are.
func (w *walk) members(o *objectRules, v document.Node, m markers, ok bool) (there int, right bool) {
	i := 0
	for c := v.Children(); c.Valid(); c.Next() {
		isDescribed, isRight := false, true
		if w.except != nil && v == w.top && c.Find(w.except) >= 0 {
			if at := c.Find(&o.names); at >= 0 && o.properties[at].isRequired {
				there++
			}
			w.mark(m, i)
			i++
			continue
		}
		if at := c.Find(&o.names); at >= 0 {
			p := &o.properties[at]
			if p.isRequired {
				there++
			}
			if s := p.schema; s != nil {
				isDescribed = true
				switch {
				case s.isPlain && s.accepts.has(c.Kind()):
					w.score++
				case s.isWriteOnly && w.use == Answers:
					isRight = w.hidden(c.Node())
				default:
					isRight = w.check(s, c.Node(), none)
				}
			}
		}
		if len(o.patterns) > 0 {
			described, takes := w.patterned(o, c.Node())
			isDescribed, isRight = isDescribed || described, isRight && takes
		}
		if !isDescribed && o.additional != nil {
			isDescribed = true
			isRight = w.other(o.additional, v, c.Node(), 0) && isRight
		}
		if o.propertyIs != nil {
			isRight = w.named(o.propertyIs, v, c.Node()) && isRight
		}
		if isDescribed {
			w.mark(m, i)
		}
		if !isRight {
			if ok = false; w.probing > 0 {
				return there, false
			}
		}
		i++
	}
	return there, ok
}

// hidden checks a member of an answer that is writeOnly. The caller of Check takes it out of the answer by its mark, so
// it is no failure. An alternative of anyOf or oneOf that has it does not match.
func (w *walk) hidden(v document.Node) bool {
	if w.choosing == 0 {
		return true
	}
	if !w.fails() {
		w.add(v, wording.Not(w.path(v)))
	}
	return false
}

// patterned checks a member by the expressions that its name matches.
func (w *walk) patterned(o *objectRules, v document.Node) (isDescribed, ok bool) {
	ok = true
	name := v.Key()
	for i := range o.patterns {
		if p := &o.patterns[i]; p.matches(name) {
			isDescribed = true
			if s := p.schema; s.isNever {
				if ok = false; !w.fails() {
					w.add(v, wording.Closed(w.path(v.Parent()), name))
				}
			} else {
				ok = w.check(s, v, none) && ok
			}
		}
	}
	return isDescribed, ok
}

// named checks the name of a member.
func (w *walk) named(s *node, of, v document.Node) bool {
	text := document.AppendString(nil, v.Key())
	d, err := document.Parse(text, document.Limits{Bytes: len(text)})
	if err == nil {
		defer d.Release()
		w.probing++
		ok := w.check(s, d.Root(), none)
		w.probing--
		if ok {
			return true
		}
	}
	if !w.fails() {
		detail := "must have a name that matches the schema in 'propertyNames'"
		if t := s.text; t != nil && t.Pattern != nil && !t.Pattern.Match(v.Key()) {
			detail = "must have a name that matches the regular expression '" + t.Shown + "'"
		}
		w.add(v, field.Invalid(w.path(of).Key(wording.Clip(v.Key())), wording.Clip(v.Key()), detail))
	}
	return false
}

// required looks for the members that must be there.
func (w *walk) required(o *objectRules, v document.Node) bool {
	ok := true
	for i := range o.properties {
		if p := &o.properties[i]; p.isRequired && !w.lacks(v, p.name) {
			if ok = false; w.probing > 0 {
				return false
			}
		}
	}
	return ok
}

// lacks reports whether a member is there or may be missing, and adds a failure if not.
func (w *walk) lacks(v document.Node, name document.Name) bool {
	if _, found := v.Lookup(name); found || w.isExcused(v, name) {
		return true
	}
	if !w.fails() {
		w.add(v, wording.Required(w.path(v).Child(wording.Clip(name.String()))))
	}
	return false
}

// isExcused reports whether a member may be missing because it is the API that sets it, or that
// does not show it: one of the schemas of the object says so.
func (w *walk) isExcused(v document.Node, name document.Name) bool {
	for i := len(w.frames) - 1; i >= 0 && w.frames[i].node == v; i-- {
		if w.frames[i].schema.excuses(name, w.use, maxMarks) {
			return true
		}
	}
	return false
}

func (s *node) excuses(name document.Name, use Use, depth int) bool {
	if o := s.object; o != nil {
		if i := o.names.Index(name.String()); i >= 0 && o.properties[i].schema.isVoid(use) {
			return true
		}
	}
	if s.logic == nil || depth == 0 {
		return false
	}
	for _, other := range s.logic.all {
		if other.excuses(name, use, depth-1) {
			return true
		}
	}
	return false
}

// isVoid reports whether a required value may be missing in a use.
func (s *node) isVoid(use Use) bool {
	return s != nil && (s.isReadOnly && use != Answers || s.isWriteOnly && use != Requests)
}

// dependent checks what holds if a member is there.
func (w *walk) dependent(d *dependent, v document.Node, m markers) bool {
	if _, found := v.Lookup(d.name); !found {
		return true
	}
	ok := true
	for _, name := range d.required {
		if ok = w.lacks(v, name) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	if d.schema != nil {
		ok = w.check(d.schema, v, m) && ok
	}
	return ok
}
