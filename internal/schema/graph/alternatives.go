package graph

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// logic checks a value by the other schemas that apply to it.
func (w *walk) logic(l *logicRules, v document.Node, m markers) bool {
	ok := true
	for _, s := range l.all {
		if ok = w.check(s, v, m) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	for _, d := range l.dynamic {
		if ok = w.check(w.target(d), v, m) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	for _, c := range l.choices {
		if ok = w.choice(c, v, m) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	for i := range l.groups {
		if ok = w.group(&l.groups[i], v, m) && ok; !ok && w.probing > 0 {
			return false
		}
	}
	for _, s := range l.not {
		if w.matches(s, v, none) {
			if ok = false; !w.fails() {
				w.add(v, wording.Not(w.path(v)))
			}
		}
	}
	if l.condition != nil && (ok || w.probing == 0) {
		next := l.otherwise
		if w.matches(l.condition, v, m) {
			next = l.then
		}
		if next != nil {
			ok = w.check(next, v, m) && ok
		}
	}
	return ok
}

// matches reports whether a schema takes the value, and marks what it describes if it does.
func (w *walk) matches(s *node, v document.Node, m markers) bool {
	own, score := none, w.score
	if m != none {
		own = w.newMarkers(v.Len())
	}
	w.probing++
	ok := w.check(s, v, own)
	w.probing--
	w.score = score
	if own != none {
		if ok {
			for i := range (v.Len() + 63) / 64 {
				w.marks[int(m)+i] |= w.marks[int(own)+i]
			}
		}
		w.marks = w.marks[:own]
	}
	return ok
}

// target is the schema that a $dynamicRef means here.
func (w *walk) target(d *dynamic) *node {
	for i := range w.frames {
		if s := w.frames[i].schema.resource.dynamicSchema(d.name); s != nil {
			return s
		}
	}
	return d.fallback
}

// choice checks a value by the schema that one of its members names.
func (w *walk) choice(c *choice, v document.Node, m markers) bool {
	if v.Kind() != document.Object {
		return c.all == nil || w.group(c.all, v, m)
	}
	member, found := v.Lookup(c.property)
	if found && member.Kind() == document.String {
		if i := slices.Index(c.values, w.str(member)); i >= 0 {
			schemas := c.schemas[i]
			if len(schemas) == 1 {
				return w.check(schemas[0], v, m)
			}
			return w.alternatives(schemas, c.isOne, false, v, m)
		}
	}
	if !found && (c.all == nil || w.fitting(c.all.branches, c.isOne, v, m) == 1) {
		return true
	}
	if w.fails() {
		return false
	}
	if found {
		w.add(member, wording.Enum(w.path(member), member, c.values))
	} else {
		w.add(v, wording.Required(w.path(v).Child(wording.Clip(c.property.String()))))
	}
	return false
}

// group checks a value by alternatives.
func (w *walk) group(g *group, v document.Node, m markers) bool {
	isNull := v.Kind() == document.Null
	if !isNull { // an alternative that null alone matches is none
		if only := g.besideNull(); only != nil {
			return w.check(only, v, m)
		}
	}
	return w.alternatives(g.branches, g.isOne, g.isLenient && isNull, v, m)
}

// besideNull is the one alternative beside null; nil if there are several.
func (g *group) besideNull() *node {
	const null = kinds(1 << document.Null)
	if len(g.branches) != 2 {
		return nil
	}
	for i, b := range g.branches {
		if b.accepts == null && g.branches[1-i].accepts != null {
			return g.branches[1-i]
		}
	}
	return nil
}

// alternatives checks a value by the alternatives of a oneOf or an anyOf. Of a oneOf that is lenient several may match.
func (w *walk) alternatives(branches []*node, isOne, isLenient bool, v document.Node, m markers) bool {
	w.choosing++
	defer func() { w.choosing-- }()
	fitting := w.fitting(branches, isOne && !isLenient, v, m)
	if fitting == 1 {
		return true
	}
	if w.fails() {
		return false
	}
	if isOne {
		w.add(v, wording.OneOf(w.path(v), fitting, demands(branches)))
	} else {
		w.add(v, wording.AnyOf(w.path(v), demands(branches)))
	}
	if fitting == 0 {
		w.explain(branches, v)
	}
	return false
}

// fitting is how many alternatives the value matches: of anyOf at most 1 is counted.
func (w *walk) fitting(branches []*node, isOne bool, v document.Node, m markers) (n int) {
	for _, s := range branches {
		if !w.matches(s, v, m) {
			continue
		}
		if n++; !isOne && m == none {
			return 1
		}
		if isOne && n > 1 && w.probing > 0 {
			return n
		}
	}
	if !isOne {
		return min(n, 1)
	}
	return n
}

// maxExplained is how deep alternatives within alternatives are explained.
const maxExplained = 3

// explain adds the failures of the alternative that comes closest: of several, the first.
func (w *walk) explain(branches []*node, v document.Node) {
	if w.explaining >= maxExplained {
		return
	}
	w.explaining++
	begin, more, most, outer := len(w.failures), w.more, -1, w.score
	var closest []Failure
	for _, s := range branches {
		w.score = 0
		w.check(s, v, none)
		if w.score > most {
			most, closest = w.score, slices.Clone(w.failures[begin:])
		}
		clear(w.failures[begin:])
		w.failures, w.more = w.failures[:begin], more
	}
	w.explaining--
	w.score = outer + most
	w.failures = append(w.failures, closest...)
}

// demands are the members that alternatives ask for, if each asks for one and nothing else; else
// nil.
func demands(branches []*node) []string {
	names := make([]string, 0, len(branches))
	for _, s := range branches {
		o := s.object
		if o == nil || o.required != 1 || len(o.properties) != 1 || o.properties[0].schema != nil || !o.size.IsAny() ||
			o.additional != nil ||
			len(o.patterns) > 0 || len(o.dependents) > 0 || o.unevaluated != nil || o.propertyIs != nil ||
			s.logic != nil || s.enum != nil {
			return nil
		}
		names = append(names, o.properties[0].name.String())
	}
	return names
}
