package openapi

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// marks are the places of what is readOnly and writeOnly. hides is set if anything is writeOnly, within alternatives too.
type marks struct {
	owned, hidden map[string]bool
	hides         bool
}

// markOwned notes a property of a request's object that is readOnly.
func (b *builder) markOwned(name string, c *conjunction) {
	at, found := c.get("readOnly")
	if !found || !at.Bool() || b.t.options.of.isAnswer() || b.t.options.kubernetes || b.t.marks.owned == nil {
		return
	}
	if b.free {
		b.sayGap(at, "is not enforced within alternatives")
		return
	}
	b.t.marks.owned[propertyOf(b.at, name)] = true
}

// ownedWithin says of properties of alternatives that are readOnly what becomes of them.
func (b *builder) ownedWithin(branches []document.Node, from *trail) {
	if b.t.options.of.isAnswer() {
		return
	}
	for _, n := range branches {
		c := b.t.flatten([]document.Node{n}, from)
		c.each("properties", func(properties document.Node) {
			members(properties, func(m document.Node) {
				sub := b.t.flatten([]document.Node{m}, c.trail)
				if at, found := sub.get("readOnly"); found && at.Bool() {
					b.sayGap(at, "is not enforced within alternatives")
				}
			})
		})
	}
}

// markHidden notes a property that is writeOnly.
func (b *builder) markHidden(name string, c *conjunction) {
	if !c.says("writeOnly") || b.t.options.kubernetes || b.t.marks.hidden == nil {
		return
	}
	b.t.marks.hides = true
	if !b.free {
		b.t.marks.hidden[propertyOf(b.at, name)] = true
	}
}

// hide takes any value of a property that is writeOnly in answers, in which it is the property that is wrong; in alternatives
// it takes none.
func hide(b *builder, name string) {
	b.p.Properties[name] = anything(b.free)
	if b.free {
		never := &builder{e: &schema.Extensions{}}
		never.never()
		b.e.SetProperty(name, never.e)
	}
}

// isLeftToAPI reports whether a required property may be missing, because it is the API that sets it, or does not show it.
func (b *builder) isLeftToAPI(c *conjunction) bool {
	of := b.t.options.of
	return c.says("readOnly") && !of.isAnswer() || c.says("writeOnly") && of.lacksHidden()
}

// ForPatches returns the schema of objects that result from patches.
func (s *Schema) ForPatches() *Schema {
	if s == nil || !s.Hides {
		return s
	}
	o := s.options
	o.of = ofPatches
	return s.doc.cached(s.node, o)
}

// propertyOf returns the place of a property.
func propertyOf(at, name string) string {
	return strings.TrimPrefix(at+".properties["+name+"]", ".")
}

// markedIn finds the marked places within a translated schema; nil if there are none.
func markedIn(marked map[string]bool, p *apiextensionsv1.JSONSchemaProps, at string) *contract.Members {
	if len(marked) == 0 {
		return nil
	}
	m := &contract.Members{}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		place, property := propertyOf(at, name), p.Properties[name]
		if marked[place] {
			m.SetMember(name, true, nil)
		} else if in := markedIn(marked, &property, place); in != nil {
			m.SetMember(name, false, in)
		}
	}
	if p.Items != nil && p.Items.Schema != nil {
		m.SetItems(markedIn(marked, p.Items.Schema, at+".items"))
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		m.SetOthers(markedIn(marked, p.AdditionalProperties.Schema, strings.TrimPrefix(at+".additionalProperties", ".")))
	}
	if !m.Any() {
		return nil
	}
	return m
}
