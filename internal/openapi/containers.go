package openapi

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

func (b *builder) list(c *conjunction) {
	b.p.MinItems = b.most(c, "minItems")
	b.p.MaxItems = b.least(c, "maxItems")
	var items []document.Node
	tuple := false
	for _, p := range c.parts {
		if _, found := p.Get("prefixItems"); found {
			tuple = true
		}
		if m, found := p.Get("items"); found {
			if m.Kind() == document.Array {
				b.warn(m, "must be one schema; it is not enforced")
				continue
			}
			items = append(items, m)
		}
	}
	if tuple {
		items = nil // what follows the first items cannot be distinguished from them
	}
	if len(items) > 0 {
		props, e := b.t.emit(b.t.flatten(items, c.trail), b.at+"."+"items", b.free)
		b.p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props}
		if !e.Empty() {
			b.e.Items = e
		}
	} else if len(b.typed) == 1 && !b.free {
		props := anything(false)
		b.p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props}
	}
	b.e.Beyond.Unique = c.says("uniqueItems") && b.t.options.kubernetes
}

// object translates the members of an object. Unlike in Kubernetes' schemas, members that are not named may be anything
// unless the schema says otherwise.
func (b *builder) object(c *conjunction) {
	b.p.MinProperties = b.most(c, "minProperties")
	b.p.MaxProperties = b.least(c, "maxProperties")
	left := b.properties(c)
	for _, name := range c.required() {
		if !slices.Contains(left, name) {
			b.p.Required = append(b.p.Required, name)
		}
	}
	b.additional(c)
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

// properties translates the named members; left are the ones that a client may leave out though
// they are required.
func (b *builder) properties(c *conjunction) (left []string) {
	var names []string
	schemas := map[string][]document.Node{}
	c.each("properties", func(properties document.Node) {
		members(properties, func(m document.Node) {
			name := strings.Clone(m.Key())
			if schemas[name] == nil {
				names = append(names, name)
			}
			schemas[name] = append(schemas[name], m)
		})
	})
	for _, name := range names {
		sub := b.t.flatten(schemas[name], c.trail)
		if b.isLeftToAPI(&sub) || b.t.options.kubernetes && sub.isZeroWhenMissing() {
			left = append(left, name)
		}
		b.markOwned(name, &sub)
		b.markHidden(name, &sub)
		if b.p.Properties == nil {
			b.p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		if implied := b.implied(name); implied != nil {
			b.p.Properties[name] = *implied
			continue
		}
		at := b.at + ".properties[" + name + "]"
		if b.at == "" {
			at = at[1:]
		}
		if b.t.options.of == ofResponses && sub.says("writeOnly") {
			hide(b, name)
			continue
		}
		props, e := b.t.emit(sub, at, b.free)
		b.p.Properties[name] = props
		if !e.Empty() {
			b.e.SetProperty(name, e)
		}
	}
	return left
}

// isZeroWhenMissing reports whether a missing member of one of Kubernetes' own kinds is read as the
// zero value of its type in Go, even if it is required: what has a default that says so, lists and
// maps.
func (c *conjunction) isZeroWhenMissing() bool {
	if _, found := c.get("default"); found {
		return true
	}
	kind, _ := c.get("type")
	_, isMap := c.get("additionalProperties")
	return kind.Is("array") || kind.Is("object") && isMap
}

// implied returns the schema of a member of the envelope of Kubernetes' objects; nil for others.
func (b *builder) implied(name string) *apiextensionsv1.JSONSchemaProps {
	if !b.t.options.envelope || b.at != "" || b.free {
		return nil
	}
	switch name {
	case "metadata":
		return &apiextensionsv1.JSONSchemaProps{Type: "object"}
	case "kind", "apiVersion":
		return &apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return nil
}

// additional says what members may be that are not named.
func (b *builder) additional(c *conjunction) {
	var schemas []document.Node
	closed, open := false, false
	take := func(m document.Node) {
		switch {
		case m.Kind() != document.Bool:
			schemas = append(schemas, m)
		case !m.Bool():
			closed = true
		default:
			open = true
		}
	}
	c.each("additionalProperties", take)
	c.each("unevaluatedProperties", take)
	c.each("patternProperties", func(patterns document.Node) {
		if patterns.Len() == 1 && slices.Contains([]string{"", ".*", "^.*$", ".+", "^.+$"}, patterns.First().Key()) {
			take(patterns.First())
			return
		}
		b.gap(patterns, "the keyword 'patternProperties' is not enforced")
		closed, open = false, true
		schemas = nil
	})
	if c.says("x-kubernetes-preserve-unknown-fields") {
		open = true
	}
	named := len(b.p.Properties) > 0
	switch {
	case b.t.isJudged && !closed && len(schemas) > 0 && named:
		b.p.XPreserveUnknownFields = new(true)
	case closed:
		b.e.Beyond.Closed = true
	case len(schemas) > 0 && (b.free || !named):
		at := strings.TrimPrefix(b.at+".additionalProperties", ".")
		props, e := b.t.emit(b.t.flatten(schemas, c.trail), at, b.free)
		b.p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &props}
		if !e.Empty() {
			b.e.Additional = e
		}
	case len(schemas) > 0:
		b.p.XPreserveUnknownFields = new(true)
		b.e.Beyond.Rest = b.t.freely(b.t.flatten(schemas, c.trail))
	case b.free:
	case open || !named || !b.t.options.kubernetes:
		b.p.XPreserveUnknownFields = new(true)
	}
}

// own takes Kubernetes' keywords, and the gateway's.
func (b *builder) own(c *conjunction) {
	for _, p := range c.parts {
		members(p.Node, func(m document.Node) {
			key := m.Key()
			b.t.isNative = b.t.isNative || strings.HasPrefix(key, "x-kubernetes-") || strings.HasPrefix(key, "x-admission-gateway-")
			switch key {
			case "x-kubernetes-list-type":
				b.decode(m, &b.p.XListType)
			case "x-kubernetes-list-map-keys":
				b.decode(m, &b.p.XListMapKeys)
			case "x-kubernetes-map-type":
				b.decode(m, &b.p.XMapType)
			case "x-kubernetes-embedded-resource":
				b.p.XEmbeddedResource = m.Bool()
			case "x-kubernetes-validations":
				var rules apiextensionsv1.ValidationRules
				b.decode(m, &rules)
				b.p.XValidations = append(b.p.XValidations, rules...)
			default:
				if strings.HasPrefix(key, "x-admission-gateway-") && b.t.options.of != ofResponses {
					place := Place(p.Node)
					b.t.origins[place] = p.Node
					b.t.keywords.Keyword(b.e, m, field.NewPath(place))
					b.t.defaults = b.t.defaults || b.e.Default != nil
				}
			}
		})
	}
	b.checkListType(c)
}

// checkListType drops a list type whose keys cannot identify items, because they may be missing.
// Kubernetes has some, and with it keys are required at any rate if it says so.
func (b *builder) checkListType(c *conjunction) {
	if b.p.XListType == nil || *b.p.XListType != "map" {
		return
	}
	for _, key := range b.p.XListMapKeys {
		var items *apiextensionsv1.JSONSchemaProps
		if b.p.Items != nil {
			items = b.p.Items.Schema
		}
		if items != nil {
			if p, found := items.Properties[key]; found && (p.Default != nil || slices.Contains(items.Required, key)) {
				continue
			}
			if b.t.options.kubernetes && b.requiredInItems(c, key) {
				items.Required = append(items.Required, key)
				continue
			}
		}
		if at, _ := c.get("x-kubernetes-list-map-keys"); !b.t.options.kubernetes {
			b.say(at, "is not enforced, because the key '%.80s' is neither required nor has a default", key)
		}
		b.p.XListType, b.p.XListMapKeys = nil, nil
		return
	}
}

// requiredInItems reports whether the items of a list must have a member.
func (b *builder) requiredInItems(c *conjunction, name string) bool {
	required := false
	c.each("items", func(n document.Node) {
		items := b.t.flatten([]document.Node{n}, c.trail)
		required = required || slices.Contains(items.required(), name)
	})
	return required
}
