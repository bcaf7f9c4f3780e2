package openapi

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// choice is what anyOf and oneOf say of a value besides real alternatives: null as one of two, a list of types, and a
// list of values with descriptions.
type choice struct {
	// lists are the real alternatives.
	lists []document.Node
	// types are the types that may be, mayBeNull whether null may be.
	types     []string
	mayBeNull bool
	// values are the ones that may be, if isListed is set.
	values   []document.Node
	isListed bool
}

// choiceOf returns the choice of a conjunction, and adds to the conjunction what a single alternative says.
func (d *Document) choiceOf(c *conjunction, isKubernetes bool) (found choice) {
	for i := 0; i < len(c.parts); i++ { // which grows
		for _, key := range []string{"oneOf", "anyOf"} {
			if list, has := c.parts[i].Get(key); has && list.Kind() == document.Array {
				d.choose(&found, c, list, isKubernetes)
			}
		}
	}
	slices.Sort(found.types)
	found.types = slices.Compact(found.types)
	return found
}

func (d *Document) choose(found *choice, c *conjunction, list document.Node, isKubernetes bool) {
	var branches []document.Node
	members(list, func(n document.Node) {
		if isNull(n) {
			found.mayBeNull = true
			return
		}
		branches = append(branches, n)
	})
	switch {
	case len(branches) == 0:
	case len(branches) == 1:
		c.add(d, branches[0])
	case all(branches, func(n document.Node) bool { return isType(n, isKubernetes) }):
		for _, n := range branches {
			names, null := typesOf(n)
			found.types = append(found.types, names...)
			found.mayBeNull = found.mayBeNull || null || truth(n, "nullable")
		}
	case all(branches, isConst):
		found.isListed = true
		for _, n := range branches {
			found.values = append(found.values, constants(n)...)
		}
	default:
		found.lists = append(found.lists, list)
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
func isType(n document.Node, isKubernetes bool) bool {
	if _, found := n.Get("type"); !found {
		return false
	}
	only := true
	members(n, func(m document.Node) {
		switch key := m.Key(); key {
		case "type", "nullable":
		case "format":
			only = only && isKubernetes
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
