package openapi

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// conjunction is a schema without $ref and allOf: all parts hold for the value. The schema itself stands first, and the
// ones that it refers to behind it.
type conjunction struct {
	parts []document.Node
	// seen are the schemas that were added, the ones among them that are nothing but a reference too.
	seen []document.Node
}

// conjunctionOf returns the conjunction of schemas of the same value.
func (d *Document) conjunctionOf(nodes ...document.Node) conjunction {
	var c conjunction
	for _, n := range nodes {
		c.add(d, n)
	}
	return c
}

// add adds a schema and what it refers to, unless it is there.
func (c *conjunction) add(d *Document, n document.Node) {
	if !n.Valid() || slices.Contains(c.seen, n) {
		return
	}
	c.seen = append(c.seen, n)
	ref, refers := n.Get("$ref")
	if refers = refers && ref.Kind() == document.String; !refers || d.v31 && !isReference(n) {
		c.parts = append(c.parts, n)
	}
	if refers {
		to, err := d.resolve(ref.Str())
		if err != nil {
			d.report.refuse(ref, "%s", err.Error())
		}
		c.add(d, to)
	}
	if !refers || d.v31 { // version 3.0 has nothing count beside a $ref
		allOf, _ := n.Get("allOf")
		members(allOf, func(sub document.Node) { c.add(d, sub) })
	}
}

// isReference reports whether a schema says nothing but what it refers to.
func isReference(n document.Node) bool {
	only := true
	members(n, func(m document.Node) {
		key := m.Key()
		only = only && (key == "$ref" || annotation(key) && key != "default" && key != "readOnly" && key != "writeOnly")
	})
	return only
}

// annotation reports whether a keyword says nothing of a value, other than the keywords of Kubernetes and the gateway.
func annotation(key string) bool { return graph.IsAnnotation(key) && !isNative(key) }

// isNative reports whether a keyword is one of Kubernetes' own, or of the gateway's.
func isNative(key string) bool {
	return strings.HasPrefix(key, "x-kubernetes-") || strings.HasPrefix(key, "x-admission-gateway-")
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

// isNever reports whether one of the parts is the schema 'false'.
func (c *conjunction) isNever() bool {
	return slices.ContainsFunc(c.parts, func(p document.Node) bool { return p.Kind() == document.Bool && !p.Bool() })
}

// required are the members that must be there.
func (c *conjunction) required() (names []string) {
	c.each("required", func(list document.Node) {
		members(list, func(m document.Node) {
			if name := strings.Clone(m.Str()); !slices.Contains(names, name) {
				names = append(names, name)
			}
		})
	})
	return names
}

// count is a number that all parts keep to, by a keyword such as minLength or maxLength; nil if none has it.
func (c *conjunction) count(key string, isTighter func(n, other int64) bool) (tightest *int64) {
	c.each(key, func(m document.Node) {
		if n, ok := m.Int64(); ok && n >= 0 && (tightest == nil || isTighter(n, *tightest)) {
			tightest = &n
		}
	})
	return tightest
}

func isMore(n, other int64) bool { return n > other }
func isLess(n, other int64) bool { return n < other }

// saysMore reports whether a keyword looks at a value itself, whatever its type is.
func (c *conjunction) saysMore() bool {
	return slices.ContainsFunc(scalarKeywords, func(key string) bool {
		_, found := c.get(key)
		return found
	})
}

var scalarKeywords = []string{
	"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"not",
}

// hasMember reports whether the schema names a member.
func (c *conjunction) hasMember(name string) bool {
	found := false
	c.each("properties", func(p document.Node) {
		_, has := p.Get(name)
		found = found || has
	})
	return found
}

// The types of JSON Schema, in the order in which messages list them.
var allTypes = []string{"integer", "number", "string", "boolean", "object", "array", "null"}

// types are the types that all parts allow, without null; none is any. nullable reports whether null is allowed beside
// them.
func (c *conjunction) types() (types []string, nullable bool) {
	typed, may, granted := false, true, false
	for _, p := range c.parts {
		names, null := typesOf(p)
		granted = granted || truth(p, "nullable") && len(names) == 0
		if len(names) == 0 && !null {
			continue
		}
		may = may && (null || truth(p, "nullable"))
		if len(names) == 0 {
			names = []string{"null"}
		}
		if types = intersect(types, names); len(types) == 0 && typed {
			return nil, true // no value is valid
		}
		typed = true
	}
	return types, typed && may || granted
}

// is reports whether the value has exactly the type.
func (c *conjunction) is(name string) bool {
	types, _ := c.types()
	return slices.Equal(types, []string{name})
}

// typesOf are the types that a schema names, and whether null is one of them.
func typesOf(n document.Node) (names []string, null bool) {
	m, found := n.Get("type")
	if !found {
		return nil, false
	}
	add := func(m document.Node) {
		switch i := slices.Index(allTypes, m.Str()); {
		case m.Is("null"):
			null = true
		case i >= 0:
			names = append(names, allTypes[i])
		}
	}
	if m.Kind() == document.Array {
		members(m, add)
	} else {
		add(m)
	}
	return names, null
}

// intersect returns the types that are in both lists; an empty list is any.
func intersect(a, b []string) []string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	var both []string
	for _, name := range allTypes {
		inA, inB := slices.Contains(a, name), slices.Contains(b, name)
		if name == "integer" {
			inA, inB = inA || slices.Contains(a, "number"), inB || slices.Contains(b, "number")
			if !slices.Contains(a, name) && !slices.Contains(b, name) {
				continue
			}
		}
		if inA && inB {
			both = append(both, name)
		}
	}
	if slices.Contains(both, "number") {
		both = slices.DeleteFunc(both, func(name string) bool { return name == "integer" })
	}
	return both
}
