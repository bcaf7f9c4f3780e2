package openapi

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// The types of JSON Schema, in the order in which messages list them.
var allTypes = []string{"integer", "number", "string", "boolean", "object", "array", "null"}

// types are the types that all parts allow, without null; none is any. nullable reports whether null is allowed beside them.
func (t *translator) types(c *conjunction) (types []string, nullable bool) {
	typed, may, granted := false, true, c.null
	for _, p := range c.parts {
		names, null := t.typesOf(p.Node)
		granted = granted || truth(p.Node, "nullable") && len(names) == 0
		if len(names) == 0 && !null {
			continue
		}
		may = may && (null || truth(p.Node, "nullable"))
		if len(names) == 0 {
			names = []string{"null"}
		}
		if types = intersect(types, names); len(types) == 0 && typed {
			t.doc.report.warn(p.Node, "can never be right, because 'type' contradicts another one; 'type' is not enforced")
			return nil, true
		}
		typed = true
	}
	return types, typed && may || granted
}

// typesOf are the types that a schema names, and whether null is one of them.
func (t *translator) typesOf(n document.Node) (names []string, null bool) {
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
		default:
			t.doc.report.warn(m, "must be a type of JSON Schema; it is not enforced")
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

// keywordTypes are the keywords that only constrain objects, or lists. An author who writes them
// without a type means one: there are defaults, rules and fields for it. Values of other types are right all the same.
var keywordTypes = map[string]string{
	"properties": "object", "additionalProperties": "object", "required": "object", "minProperties": "object", "maxProperties": "object",
	"patternProperties": "object", "propertyNames": "object", "unevaluatedProperties": "object",
	"discriminator": "object",
	"items":         "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array", "contains": "array",
}

// infer finds the type that is meant if none is named.
func (b *builder) infer(c *conjunction) {
	if len(b.typed) > 0 {
		return
	}
	found := ""
	for _, p := range c.parts {
		members(p.Node, func(m document.Node) {
			if name := keywordTypes[m.Key()]; name != "" && found == "" {
				found = name
			}
		})
	}
	if found != "" && b.at == "" && !b.free {
		b.t.isUntyped = true
	}
	if found == "" {
		found = b.commonType(c)
	}
	if found != "" {
		b.typed = []string{found}
	}
}

// commonType is the type that all alternatives have, or all values of an enumeration.
func (b *builder) commonType(c *conjunction) string {
	if len(b.e.Beyond.OneOf)+len(b.e.Beyond.AnyOf) > 0 {
		for _, group := range append(slices.Clip(b.e.Beyond.OneOf), b.e.Beyond.AnyOf...) {
			name := group[0].Schema.Type
			for _, branch := range group {
				if branch.Schema.Type != name {
					name = ""
				}
			}
			if name == "object" || name == "array" {
				return name
			}
		}
		return ""
	}
	values, listed := b.values(c)
	if !listed {
		return ""
	}
	name := ""
	for _, v := range values {
		if v.Kind() == document.Null {
			continue
		}
		if name != "" && name != v.Kind().String() {
			return ""
		}
		name = v.Kind().String()
	}
	return name
}
