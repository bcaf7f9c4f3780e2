package openapi

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// groups translates anyOf and oneOf. What they are used for besides real alternatives is seen through: null as one of two,
// a list of types, and a list of values with descriptions. Real ones are translated for Kubernetes' documents, whose schemas have
// no judge.
func (b *builder) groups(c *conjunction) {
	for i := 0; i < len(c.parts); i++ { // which grows
		p := c.parts[i]
		found := false
		for _, key := range []string{"oneOf", "anyOf"} {
			if list, has := p.Get(key); has && list.Kind() == document.Array {
				found = true
				b.group(c, p, key, list)
			}
		}
		if discriminator, has := p.Get("discriminator"); has && !found && !p.inherited && !b.t.isJudged {
			b.children(c, p, discriminator)
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
		b.alternatives(c, p, key, branches)
	}
}

// alternatives translates real ones, each with the value of the discriminator that names it.
func (b *builder) alternatives(c *conjunction, p part, key string, branches []document.Node) {
	var group []*schema.Free
	names := b.discriminated(p)
	property := ""
	if discriminator, found := p.Get("discriminator"); found {
		property = text(discriminator, "propertyName")
	}
	choice := schema.Choice{Property: strings.Clone(property)}
	for _, n := range branches {
		branch := b.t.flatten([]document.Node{n}, c.trail)
		free := b.t.freely(branch)
		group = append(group, free)
		if branch.name != "" {
			choice.Cases = append(choice.Cases, schema.ChoiceCase{Values: names(branch.name), Schema: free})
		}
	}
	if property != "" && len(choice.Cases) == len(branches) {
		b.e.Beyond.Choices = append(b.e.Beyond.Choices, choice)
		return
	}
	if key == "oneOf" {
		b.e.Beyond.OneOf = append(b.e.Beyond.OneOf, group)
	} else {
		b.e.Beyond.AnyOf = append(b.e.Beyond.AnyOf, group)
	}
}

// discriminated finds the values of a discriminator that name a component: the ones that the
// mapping gives it, and its own name unless that is given to another.
func (b *builder) discriminated(p part) func(component string) []string {
	mapped := map[string][]string{}
	taken := map[string]bool{}
	discriminator, _ := p.Get("discriminator")
	mapping, _ := discriminator.Get("mapping")
	members(mapping, func(m document.Node) {
		component := strings.TrimPrefix(m.Str(), componentPrefix)
		mapped[component] = append(mapped[component], strings.Clone(m.Key()))
		taken[m.Key()] = true
	})
	return func(component string) []string {
		names := slices.Clone(mapped[component])
		if own := component[strings.LastIndexByte(component, '/')+1:]; !taken[own] {
			names = append(names, strings.Clone(own))
		}
		return names
	}
}

// children translates a discriminator of a schema that others extend by allOf: a value is one of them, or the schema itself.
func (b *builder) children(c *conjunction, p part, discriminator document.Node) {
	property, base := text(discriminator, "propertyName"), b.t.doc.component(p.Node)
	heirs := b.t.doc.heirs(base)
	if property == "" || base == "" || len(heirs) == 0 {
		return
	}
	names := b.discriminated(p)
	itself := &schema.Free{Schema: &apiextensionsv1.JSONSchemaProps{}, Extensions: &schema.Extensions{}}
	choice := schema.Choice{Property: strings.Clone(property), Cases: []schema.ChoiceCase{{Values: names(base), Schema: itself}}}
	for _, heir := range heirs {
		pointer := componentPrefix + strings.NewReplacer("~", "~0", "/", "~1").Replace(heir)
		child, _ := b.t.doc.resolve(pointer)
		branch := conjunction{trail: c.trail, refs: []string{pointer}, deepest: 1}
		if branch.cut = c.trail.length() >= b.t.depth || c.trail.count(pointer) >= maxRepeats; branch.cut {
			b.gap(child, "is not enforced everywhere: the schema stands in itself, or too deep in others")
		} else {
			b.t.collect(&branch, child, true, branch.refs)
		}
		branch.extend(c.trail)
		choice.Cases = append(choice.Cases, schema.ChoiceCase{Values: names(heir), Schema: b.t.freely(branch)})
	}
	b.e.Beyond.Choices = append(b.e.Beyond.Choices, choice)
}

// component is the name of a schema among the components; empty if it is none of them.
func (d *Document) component(n document.Node) string {
	schemas, err := d.resolve("#/components/schemas")
	if err != nil || n.Parent() != schemas {
		return ""
	}
	return n.Key()
}

// heirs are the components that extend one by allOf, directly or by way of others, in the document's order.
func (d *Document) heirs(base string) []string {
	schemas, err := d.resolve("#/components/schemas")
	if err != nil || base == "" {
		return nil
	}
	is := map[string]bool{base: true}
	if d.extends == nil {
		d.extends = extensionsOf(schemas)
	}

	for grown := true; grown; {
		grown = false
		for name, bases := range d.extends {
			if !is[name] && slices.ContainsFunc(bases, func(b string) bool { return is[b] }) {
				is[name], grown = true, true
			}
		}
	}
	var heirs []string
	members(schemas, func(s document.Node) {
		if name := s.Key(); is[name] && name != base {
			heirs = append(heirs, name)
		}
	})
	return heirs
}

// extensionsOf are the components that each of them extends.
func extensionsOf(schemas document.Node) map[string][]string {
	extends := map[string][]string{}
	members(schemas, func(s document.Node) {
		allOf, _ := s.Get("allOf")
		members(allOf, func(b document.Node) {
			if of, local := strings.CutPrefix(text(b, "$ref"), componentPrefix); local {
				extends[s.Key()] = append(extends[s.Key()], of)
			}
		})
	})
	return extends
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
