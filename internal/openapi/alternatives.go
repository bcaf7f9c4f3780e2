package openapi

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// groups translates anyOf and oneOf. What they are used for besides real alternatives is seen through: null as one of two,
// a list of types, and a list of values with descriptions. Real ones are translated for Kubernetes' documents, whose schemas have
// no judge.
func (b *builder) groups(c *conjunction) {
	for i := 0; i < len(c.parts); i++ { // which grows
		p := c.parts[i]
		for _, key := range []string{"oneOf", "anyOf"} {
			if list, has := p.Get(key); has && list.Kind() == document.Array {
				b.group(c, p, key, list)
			}
		}
	}
}

func (b *builder) group(c *conjunction, p part, key string, list document.Node) {
	var branches []document.Node
	null := false
	members(list, func(n document.Node) {
		if isNull(n) {
			null = true
			return
		}
		branches = append(branches, n)
	})
	c.null = c.null || null
	switch {
	case len(branches) == 0:
	case len(branches) == 1:
		b.t.collect(c, branches[0], true, p.way)
	case all(branches, b.isType):
		for _, n := range branches {
			names, isNull := b.t.typesOf(n)
			b.union = append(b.union, names...)
			c.null = c.null || isNull || truth(n, "nullable")
		}
		slices.Sort(b.union)
		b.union = slices.Compact(b.union)
	case all(branches, isConst):
		b.listed = true
		for _, n := range branches {
			b.consts = append(b.consts, constants(n)...)
		}
	case b.t.isJudged:
		b.ownedWithin(branches, c.trail)
	default:
		b.alternatives(c, key, branches)
	}
}

// alternatives translates real ones.
func (b *builder) alternatives(c *conjunction, key string, branches []document.Node) {
	group := make([]*schema.Free, len(branches))
	for i, n := range branches {
		group[i] = b.t.freely(b.t.flatten([]document.Node{n}, c.trail))
	}
	if key == "oneOf" {
		b.e.Beyond.OneOf = append(b.e.Beyond.OneOf, group)
	} else {
		b.e.Beyond.AnyOf = append(b.e.Beyond.AnyOf, group)
	}
}

// isNull reports whether only null is right.
func isNull(n document.Node) bool {
	if t, found := n.Get("type"); found {
		return t.Is("null") || t.Kind() == document.Array && t.Len() == 1 && t.First().Is("null")
	}
	if v, found := n.Get("const"); found {
		return v.Kind() == document.Null
	}
	values, found := n.Get("enum")
	return found && values.Len() == 1 && values.First().Kind() == document.Null
}

// isType reports whether a schema names a type and nothing else that counts.
func (b *builder) isType(n document.Node) bool {
	if _, found := n.Get("type"); !found {
		return false
	}
	only := true
	members(n, func(m document.Node) {
		switch key := m.Key(); key {
		case "type", "nullable":
		case "format":
			only = only && b.t.options.kubernetes
		default:
			only = only && annotation(key)
		}
	})
	return only
}

// isConst reports whether a schema lists values and says nothing else that counts.
func isConst(n document.Node) bool {
	found, only := false, true
	members(n, func(m document.Node) {
		switch key := m.Key(); key {
		case "const", "enum":
			found = true
		case "type":
		default:
			only = only && annotation(key)
		}
	})
	return found && only
}

// constants are the values that a schema lists.
func constants(n document.Node) (values []document.Node) {
	if v, found := n.Get("const"); found {
		return []document.Node{v}
	}
	list, _ := n.Get("enum")
	members(list, func(v document.Node) { values = append(values, v) })
	return values
}
