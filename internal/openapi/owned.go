package openapi

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
)

// markOwned notes a property of a request's object that is readOnly.
func (b *builder) markOwned(name string, c *conjunction) {
	at, found := c.get("readOnly")
	if !found || !at.Bool() || b.t.options.of == ofAnswers || b.t.options.kubernetes || b.t.owned == nil {
		return
	}
	if b.free {
		b.warn(at, "is not enforced within alternatives")
		return
	}
	b.t.owned[propertyOf(b.at, name)] = true
}

// propertyOf returns the place of a property.
func propertyOf(at, name string) string {
	return strings.TrimPrefix(at+".properties["+name+"]", ".")
}

// ownedIn finds what is readOnly within a translated schema; nil if nothing is.
func (t *translator) ownedIn(p *apiextensionsv1.JSONSchemaProps, at string) *contract.Owned {
	o := &contract.Owned{}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		place, property := propertyOf(at, name), p.Properties[name]
		if t.owned[place] {
			o.SetMember(name, true, nil)
		} else if in := t.ownedIn(&property, place); in != nil {
			o.SetMember(name, false, in)
		}
	}
	if p.Items != nil && p.Items.Schema != nil {
		o.SetItems(t.ownedIn(p.Items.Schema, at+".items"))
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		o.SetOthers(t.ownedIn(p.AdditionalProperties.Schema, strings.TrimPrefix(at+".additionalProperties", ".")))
	}
	if !o.Any() {
		return nil
	}
	return o
}
