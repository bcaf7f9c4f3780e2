package openapi

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// conjunction is a schema without $ref and allOf: all parts hold for the value. The schema itself stands first, and what it
// refers to behind it.
type conjunction struct {
	parts []part
	// refs are the references that were followed, and deepest how many of them one after the other.
	refs    []string
	deepest int
	// trail are the references that led to the schema, its own among them.
	trail *trail
	// cut is set if the schema is left out: it stands in itself, or too deep.
	cut bool
	// null is set if alternatives allow null.
	null bool
}

type part struct {
	document.Node
	inherited bool // by allOf
	// way are the references that led to it, for this one value.
	way []string
}

// trail are the references that led to a schema: the ones that were followed for one value, and
// before them the ones for the value around it.
type trail struct {
	refs []string
	next *trail
	len  int // how many of them one after the other
}

func (t *trail) length() int {
	if t == nil {
		return 0
	}
	return t.len
}

// count is for how many values a reference was followed.
func (t *trail) count(ref string) (n int) {
	for ; t != nil; t = t.next {
		if slices.Contains(t.refs, ref) {
			n++
		}
	}
	return n
}

// maxRepeats is how often a schema may stand in itself before it is left out.
const maxRepeats = 2

// flatten makes a conjunction of schemas that stand for the same value.
func (t *translator) flatten(nodes []document.Node, from *trail) conjunction {
	c := conjunction{trail: from}
	for _, n := range nodes {
		t.collect(&c, n, false, nil)
	}
	c.extend(from)
	return c
}

// extend makes the trail of what is in the value.
func (c *conjunction) extend(from *trail) {
	if c.trail = from; len(c.refs) > 0 {
		c.trail = &trail{refs: c.refs, next: from, len: from.length() + c.deepest}
	}
}

// collect adds a schema to the conjunction. way are the references that led to it, for this one value.
func (t *translator) collect(c *conjunction, n document.Node, inherited bool, way []string) {
	ref, refers := n.Get("$ref")
	refers = refers && ref.Kind() == document.String
	if refers && !t.doc.v31 {
		t.ignoredSiblings(n)
		t.refer(c, ref, inherited, way)
		return
	}
	c.parts = append(c.parts, part{n, inherited, way})
	if refers {
		t.refer(c, ref, inherited, way)
	}
	allOf, _ := n.Get("allOf")
	members(allOf, func(sub document.Node) { t.collect(c, sub, true, way) })
}

// refer adds what a reference points to.
func (t *translator) refer(c *conjunction, ref document.Node, inherited bool, way []string) {
	pointer := ref.Str()
	switch {
	case slices.Contains(way, pointer):
		t.doc.report.warn(ref, "must not refer to itself by way of '$ref' and 'allOf' alone; this is not enforced")
		return
	case slices.Contains(c.refs, pointer):
		return // it holds already
	case c.trail.count(pointer) >= maxRepeats:
		c.cut = true
		t.doc.report.gap(ref, "is not enforced deeper than this: the schema stands in itself")
		return
	case c.trail.length()+len(way) >= t.depth:
		c.cut = true
		t.doc.report.gap(ref, "is not enforced here: with everything that it refers to the schema would be too large")
		return
	}
	to, err := t.doc.resolve(pointer)
	if err != nil {
		t.doc.report.refuse(ref, "%s", err.Error())
		return
	}
	c.refs = append(c.refs, pointer)
	way = append(way[:len(way):len(way)], pointer)
	c.deepest = max(c.deepest, len(way))
	t.collect(c, to, inherited, way)
}

// ignoredSiblings says that version 3.0 has nothing count beside a $ref.
func (t *translator) ignoredSiblings(n document.Node) {
	members(n, func(m document.Node) {
		if key := m.Key(); key != "$ref" && !annotation(key) {
			t.doc.report.warn(m, "does not count beside '$ref' in OpenAPI 3.0: put both into an 'allOf'")
		}
	})
}

// get is the first of the parts' members with the key.
func (c *conjunction) get(key string) (document.Node, bool) {
	for _, p := range c.parts {
		if m, found := p.Get(key); found {
			return m, true
		}
	}
	return document.Node{}, false
}

// each visits the parts' members with the key.
func (c *conjunction) each(key string, visit func(document.Node)) {
	for _, p := range c.parts {
		if m, found := p.Get(key); found {
			visit(m)
		}
	}
}

// says reports whether one of the parts has the member and it is true.
func (c *conjunction) says(key string) bool {
	found := false
	c.each(key, func(m document.Node) { found = found || m.Bool() })
	return found
}

// forbids reports whether one of the parts is the schema 'false'.
func (c *conjunction) forbids() bool {
	return slices.ContainsFunc(c.parts, func(p part) bool { return p.Kind() == document.Bool && !p.Bool() })
}
