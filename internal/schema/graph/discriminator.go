package graph

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// alternatives are the lists of alternatives of a schema.
var alternatives = []string{"oneOf", "anyOf"}

// discriminates reports whether the discriminator of the schema takes care of a list of
// alternatives.
func (f *filler) discriminates(list document.Node) bool {
	if f.chosen == nil {
		f.chosen = map[uint32]*choice{}
		d, found := f.at.Get("discriminator")
		if _, isOptional := d.Get("defaultMapping"); !found || isOptional || !f.isOpenAPI() {
			return false
		}
		for _, key := range alternatives {
			if l, has := f.at.Get(key); has && l.Kind() == document.Array {
				f.chosen[l.Index()] = f.choice(d, l, key == "oneOf")
			}
		}
	}
	return f.chosen[list.Index()] != nil
}

// discriminator compiles the keyword.
func (f *filler) discriminator(m document.Node) {
	property, found := m.Get("propertyName")
	if !found || property.Kind() != document.String {
		at := m
		if found {
			at = property
		}
		f.warn(at, "must have the name of a property as `propertyName`; the alternatives are told apart without it")
		return
	}
	if otherwise, isOptional := m.Get("defaultMapping"); isOptional {
		f.gap(otherwise, "the alternatives are told apart by their schemas, whatever the discriminator names")
		return
	}
	mapping, hasMapping := m.Get("mapping")
	if hasMapping && mapping.Kind() != document.Object {
		f.warn(mapping, "must be an object of names of schemas; it does not count")
	}
	hasAlternatives := false
	for _, key := range alternatives {
		if l, has := f.at.Get(key); has && l.Kind() == document.Array && l.Len() > 0 {
			hasAlternatives = true
			if f.discriminates(l) {
				logic := f.s.logical()
				logic.choices = append(logic.choices, f.chosen[l.Index()])
			}
		}
	}
	if !hasAlternatives {
		f.heirs(m, property.Str())
	}
}

// choice makes the choice between alternatives; nil if the member does not identify each of them.
func (f *filler) choice(discriminator, list document.Node, isOne bool) *choice {
	named, _ := discriminator.Get("propertyName")
	property := named.Str()
	if property == "" || list.Len() < 2 {
		return nil
	}
	mapped := f.mapping(discriminator)
	c := &choice{property: document.NewName(strings.Clone(property)), isOne: isOne,
		all: &group{isOne: isOne, isLenient: true}}
	for b := list.First(); b.Valid(); b = b.Next() {
		s := f.sub(b)
		c.all.branches = append(c.all.branches, s)
		if isNull(b) {
			continue
		}
		values, known := f.valuesOf(b, property, maxMarks)
		component := f.component(b)
		if component == "" && !known {
			return nil
		}
		f.addCases(c, mapped, component, values, known, s)
	}
	return f.checked(c, discriminator)
}

// addCases adds the values that name a schema: the ones of the mapping, and the ones that the
// schema itself lists for the member. A schema that lists none has its name for one.
func (f *filler) addCases(c *choice, mapped []mappedValue, component string, values []string, known bool, s *node) {
	others := map[string]bool{}
	for _, m := range mapped {
		if component != "" && m.component == component {
			c.add(m.value, s)
		} else {
			others[m.value] = true
		}
	}
	if !known {
		values = []string{component[strings.LastIndexByte(component, '/')+1:]}
	}
	for _, value := range values {
		if !others[value] {
			c.add(value, s)
		}
	}
}

// checked drops a choice of which the schema allows no value.
func (f *filler) checked(c *choice, at document.Node) *choice {
	allowed, known := f.valuesOf(f.at, c.property.String(), 0)
	if known && !slices.ContainsFunc(c.values, func(v string) bool { return slices.Contains(allowed, v) }) {
		f.warn(at, "names no value that the property '%.80s' may have; the alternatives are told apart without it", c.property.String())
		return nil
	}
	return c
}

// mappedValue is a member of a discriminator's mapping.
type mappedValue struct{ value, component string }

const componentPrefix = "#/components/schemas/"

func (f *filler) mapping(discriminator document.Node) (all []mappedValue) {
	mapping, _ := discriminator.Get("mapping")
	if mapping.Kind() != document.Object {
		return nil
	}
	for m := mapping.First(); m.Valid(); m = m.Next() {
		all = append(all, mappedValue{strings.Clone(m.Key()),
			strings.Clone(strings.TrimPrefix(m.Str(), componentPrefix))})
	}
	return all
}

// component is the name of the component that a schema refers to, or is; empty if it does neither.
func (f *filler) component(n document.Node) string {
	if ref, found := n.Get("$ref"); found {
		name, _ := strings.CutPrefix(ref.Str(), componentPrefix)
		return strings.Clone(name)
	}
	schemas, err := Resolve(f.root, strings.TrimSuffix(componentPrefix, "/"))
	if err != nil || n.Parent() != schemas {
		return ""
	}
	return strings.Clone(n.Key())
}

// valuesOf returns the strings that a schema allows for a member by `enum` or `const`; known is
// false if it does not say. Depth bounds how far alternatives and references are followed.
func (f *filler) valuesOf(n document.Node, property string, depth int) (values []string, known bool) {
	if properties, found := n.Get("properties"); found {
		if p, found := properties.Get(property); found {
			if values, known = f.stringsOf(p, maxMarks); known {
				return values, true
			}
		}
	}
	if depth == 0 {
		return nil, false
	}
	if ref, found := n.Get("$ref"); found {
		if to, err := f.resolve(ref.Str(), n); err == nil {
			if values, known = f.valuesOf(to, property, depth-1); known {
				return values, true
			}
		}
	}
	if all, found := n.Get("allOf"); found {
		for b := all.First(); b.Valid(); b = b.Next() {
			if more, is := f.valuesOf(b, property, depth-1); is && (!known || len(more) < len(values)) {
				values, known = more, true
			}
		}
		if known {
			return values, true
		}
	}
	for _, key := range alternatives {
		list, found := n.Get(key)
		if !found || list.Len() == 0 {
			continue
		}
		values, known = nil, true
		for b := list.First(); b.Valid() && known; b = b.Next() {
			var more []string
			more, known = f.valuesOf(b, property, depth-1)
			values = append(values, more...)
		}
		if known {
			return values, true
		}
	}
	return nil, false
}

// stringsOf returns the strings that a schema lists; known is false if it lists no values, or
// others.
func (f *filler) stringsOf(n document.Node, depth int) (values []string, known bool) {
	add := func(v document.Node) {
		if v.Kind() != document.String {
			known = false
		}
		values = append(values, strings.Clone(v.Str()))
	}
	if v, found := n.Get("const"); found {
		known = true
		add(v)
		return values, known
	}
	if list, found := n.Get("enum"); found && list.Len() > 0 {
		known = true
		for v := list.First(); v.Valid(); v = v.Next() {
			add(v)
		}
		return values, known
	}
	if depth == 0 {
		return nil, false
	}
	if ref, found := n.Get("$ref"); found {
		if to, err := f.resolve(ref.Str(), n); err == nil {
			return f.stringsOf(to, depth-1)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, found := n.Get(key)
		if !found || list.Len() == 0 {
			continue
		}
		values, known = nil, key != "allOf"
		for b := list.First(); b.Valid(); b = b.Next() {
			more, is := f.stringsOf(b, depth-1)
			if key == "allOf" && is {
				return more, true
			}
			known = known && is
			values = append(values, more...)
		}
		if known {
			return values, true
		}
	}
	return nil, false
}

// heirs compiles the discriminator of a schema that others extend by allOf: a value is one of them,
// or the schema itself.
func (f *filler) heirs(m document.Node, property string) {
	base := f.component(f.at)
	heirs := f.heirsOf(base)
	if len(heirs) == 0 {
		return
	}
	mapped := f.mapping(m)
	c := &choice{property: document.NewName(strings.Clone(property))}
	schemas, _ := Resolve(f.root, strings.TrimSuffix(componentPrefix, "/"))
	f.addCases(c, mapped, base, nil, false, anything)
	for _, heir := range heirs {
		n, _ := schemas.Get(heir)
		values, known := f.ownValues(n, property, base)
		f.addCases(c, mapped, heir, values, known, f.sub(n))
	}
	if c = f.checked(c, m); c != nil {
		l := f.s.logical()
		l.choices = append(l.choices, c)
	}
}

// ownValues is valuesOf without what an extending schema has from the one that it extends.
func (f *filler) ownValues(n document.Node, property, base string) (values []string, known bool) {
	if values, known = f.valuesOf(n, property, 0); known {
		return values, known
	}
	all, _ := n.Get("allOf")
	for b := all.First(); b.Valid(); b = b.Next() {
		if f.component(b) == base {
			continue
		}
		if _, refers := b.Get("$ref"); refers {
			continue
		}
		if values, known = f.valuesOf(b, property, 0); known {
			return values, known
		}
	}
	return nil, false
}

// heirsOf are the components that extend one by allOf, directly or by way of others, in the
// document's order.
func (c *Compiler) heirsOf(base string) []string {
	schemas, err := Resolve(c.root, strings.TrimSuffix(componentPrefix, "/"))
	if err != nil || base == "" {
		return nil
	}
	if c.extends == nil {
		c.extends = map[string][]string{}
		for s := schemas.First(); s.Valid(); s = s.Next() {
			all, _ := s.Get("allOf")
			for b := all.First(); b.Valid(); b = b.Next() {
				ref, _ := b.Get("$ref")
				if of, isLocal := strings.CutPrefix(ref.Str(), componentPrefix); isLocal {
					c.extends[strings.Clone(s.Key())] = append(c.extends[s.Key()], strings.Clone(of))
				}
			}
		}
	}
	is := map[string]bool{base: true}
	for grown := true; grown; {
		grown = false
		for name, bases := range c.extends {
			if !is[name] && slices.ContainsFunc(bases, func(b string) bool { return is[b] }) {
				is[name], grown = true, true
			}
		}
	}
	var heirs []string
	for s := schemas.First(); s.Valid(); s = s.Next() {
		if name := s.Key(); is[name] && name != base {
			heirs = append(heirs, strings.Clone(name))
		}
	}
	return heirs
}

// isExtensible reports whether a schema has a discriminator without alternatives, for schemas that
// extend it.
func isExtensible(n document.Node) bool {
	if _, found := n.Get("discriminator"); !found {
		return false
	}
	for _, key := range alternatives {
		if _, found := n.Get(key); found {
			return false
		}
	}
	return true
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
