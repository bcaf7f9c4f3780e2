// Package schematest makes structural schemas and objects for tests, and asks
// Kubernetes' own packages what is right for them.
package schematest

import (
	"math/rand/v2"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Generator makes schemas and objects from a source of randomness. Names and
// values come from small sets, so that what can meet does meet.
type Generator struct {
	*rand.Rand
}

// New is a Generator whose results depend on the seed alone.
func New(seed uint64) *Generator {
	return &Generator{rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
}

var names = []string{"a", "b", "c", "name", "size", "mode", "spec", "kind", "metadata", "apiVersion", "replicas",
	"selector", "x-y", "é"}

// Schema is a structural schema of an object. Kubernetes may refuse it all the
// same, mostly for its defaults.
func (g *Generator) Schema() *apiextensionsv1.JSONSchemaProps {
	s := g.object(3, true)
	s.XPreserveUnknownFields = nil
	if g.one(8) {
		s.XPreserveUnknownFields = pointer(true)
	}
	s.AdditionalProperties = nil
	s.Nullable = false
	return &s
}

func pointer[T any](v T) *T { return &v }

// one is true once in n times.
func (g *Generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *Generator, from []T) T { return from[g.IntN(len(from))] }

func (g *Generator) schema(depth int) apiextensionsv1.JSONSchemaProps {
	var s apiextensionsv1.JSONSchemaProps
	kind := g.IntN(12)
	if depth == 0 && kind < 6 {
		kind += 6
	}
	switch kind {
	case 0, 1, 2, 3:
		s = g.object(depth-1, false)
	case 4, 5:
		s = g.list(depth - 1)
	case 6, 7:
		s = g.text()
	case 8:
		s = g.integer()
	case 9:
		s = g.number()
	case 10:
		s = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	default:
		s = g.odd()
	}
	if g.one(6) {
		s.Nullable = true
	}
	if g.one(5) {
		g.combine(&s)
	}
	if g.one(4) {
		s.Default = &apiextensionsv1.JSON{Raw: g.value(&s, 1000)}
	}
	if g.one(4) {
		g.rules(&s)
	}
	return s
}

// rules adds CEL rules; some compare with the old value.
func (g *Generator) rules(s *apiextensionsv1.JSONSchemaProps) {
	var rules, paths []string
	switch s.Type {
	case "object":
		for _, name := range sorted(s.Properties) {
			if strings.ContainsAny(name, "-é") {
				continue
			}
			rules = append(rules, "has(self."+name+")", "!has(self."+name+") || size(string(type(self."+name+"))) > 3")
			if t := s.Properties[name].Type; t == "string" {
				rules = append(rules, "!has(self."+name+") || self."+name+" != 'a'", "self."+name+" != 'abc'")
			} else if t == "integer" {
				rules = append(rules, "!has(self."+name+") || self."+name+" > 2", "self."+name+" < 5",
					"10 / self."+name+" > 1")
			}
			paths = append(paths, "."+name)
		}
		if s.Properties == nil && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			rules = append(rules, "size(self) < 2", "self.all(k, k != 'a')")
		}
	case "array":
		rules = append(rules, "size(self) < 3", "size(self) != 1")
	case "string":
		rules = append(rules, "size(self) < 4", "self != 'Open'", "self.startsWith('a')")
	case "integer":
		rules = append(rules, "self > 1", "self != 5", "self % 2 == 0", "10 / self > 2")
	case "boolean":
		rules = append(rules, "self", "!self")
	}
	if s.Type != "" && s.XPreserveUnknownFields == nil {
		rules = append(rules, "self == oldSelf")
	}
	if len(rules) == 0 {
		return
	}
	for range 1 + g.IntN(2) {
		// Without a message the gateway says what Kubernetes does not.
		r := apiextensionsv1.ValidationRule{Rule: pick(g, rules), Message: "must be as the rule says"}
		if g.one(2) {
			r.Message = " must be so "
		}
		if g.one(3) {
			r.MessageExpression = pick(g, []string{"'found ' + string(type(self))", "''", "string(1 / 0)"})
		}
		if g.one(3) {
			r.Reason = pointer(pick(g, []apiextensionsv1.FieldValueErrorReason{
				apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueRequired,
				apiextensionsv1.FieldValueDuplicate, apiextensionsv1.FieldValueInvalid,
			}))
		}
		if len(paths) > 0 && g.one(2) {
			r.FieldPath = pick(g, paths)
		}
		if strings.Contains(r.Rule, "oldSelf") && g.one(3) {
			r.Rule = "!oldSelf.hasValue() || self == oldSelf.value()"
			r.OptionalOldSelf = pointer(true)
		}
		s.XValidations = append(s.XValidations, r)
	}
}

// Wordless takes the messages of all rules in a schema away.
func Wordless(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	for i := range s.XValidations {
		s.XValidations[i].Message, s.XValidations[i].MessageExpression = "", ""
	}
	for name, p := range s.Properties {
		Wordless(&p)
		s.Properties[name] = p
	}
	if s.AdditionalProperties != nil {
		Wordless(s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		Wordless(s.Items.Schema)
	}
}

func (g *Generator) object(depth int, root bool) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "object"}
	if !root && g.one(4) {
		switch g.IntN(5) {
		case 0:
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
		case 1:
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false}
		default:
			values := g.schema(max(depth, 0))
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
		}
	} else {
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for range g.IntN(5) {
			name := pick(g, names)
			if root && (name == "metadata" || name == "kind" || name == "apiVersion") {
				continue
			}
			s.Properties[name] = g.schema(max(depth, 0))
		}
		for _, name := range sorted(s.Properties) {
			if g.one(4) {
				s.Required = append(s.Required, name)
			}
		}
		if !root && g.one(6) {
			s.XEmbeddedResource = true
			s.XPreserveUnknownFields = pointer(true)
			delete(s.Properties, "metadata")
			delete(s.Properties, "kind")
			delete(s.Properties, "apiVersion")
			s.Required = nil
		}
		if g.one(5) {
			s.XPreserveUnknownFields = pointer(true)
		}
	}
	if g.one(8) {
		s.MinProperties = pointer(int64(g.IntN(3)))
	}
	if g.one(8) {
		s.MaxProperties = pointer(int64(g.IntN(4) + 1))
	}
	return s
}

func (g *Generator) list(depth int) apiextensionsv1.JSONSchemaProps {
	items := g.schema(max(depth, 0))
	s := apiextensionsv1.JSONSchemaProps{Type: "array"}
	switch g.IntN(4) {
	case 0:
		items = pick(g, []func() apiextensionsv1.JSONSchemaProps{g.text, g.integer, g.number})()
		items.Nullable = false
		s.XListType = pointer("set")
	case 1:
		items = g.object(max(depth, 0), false)
		items.AdditionalProperties, items.XEmbeddedResource, items.Nullable = nil, false, false
		if items.Properties == nil {
			items.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		s.XListType = pointer("map")
		for _, key := range []string{"name", "mode"}[:1+g.IntN(2)] {
			items.Properties[key] = pick(g, []func() apiextensionsv1.JSONSchemaProps{g.text, g.integer})()
			items.Required = append(items.Required, key)
			s.XListMapKeys = append(s.XListMapKeys, key)
		}
	}
	s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
	if g.one(6) {
		s.MinItems = pointer(int64(g.IntN(3)))
	}
	if g.one(6) {
		s.MaxItems = pointer(int64(g.IntN(4)))
	}
	return s
}

var formats = []string{"date", "date-time", "duration", "ipv4", "ipv6", "cidr", "uuid", "byte", "uri", "email",
	"hostname", "mac", "password", "moon", "k8s-short-name"}

func (g *Generator) text() apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "string"}
	if g.one(4) {
		s.MinLength = pointer(int64(g.IntN(4)))
	}
	if g.one(4) {
		s.MaxLength = pointer(int64(g.IntN(8)))
	}
	if g.one(6) {
		s.Pattern = pick(g, []string{`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `b`, `^\d{1,3}$`, `^$`})
	}
	if g.one(5) {
		s.Format = pick(g, formats)
	}
	if g.one(6) {
		s.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"Open"`)}}
	}
	return s
}

func (g *Generator) integer() apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	if g.one(3) {
		s.Format = pick(g, []string{"int32", "int64"})
	}
	g.bounds(&s, 1)
	if g.one(8) {
		s.Enum = []apiextensionsv1.JSON{{Raw: []byte(`2`)}, {Raw: []byte(`5`)}}
	}
	return s
}

func (g *Generator) number() apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "number"}
	if g.one(3) {
		s.Format = pick(g, []string{"float", "double"})
	}
	g.bounds(&s, 1)
	return s
}

func (g *Generator) bounds(s *apiextensionsv1.JSONSchemaProps, unit float64) {
	if g.one(4) {
		s.Minimum = pointer(float64(g.IntN(4)-1) * unit)
		s.ExclusiveMinimum = g.one(3)
	}
	if g.one(4) {
		s.Maximum = pointer(float64(g.IntN(12)) * unit)
		s.ExclusiveMaximum = g.one(3)
	}
	if g.one(8) {
		s.MultipleOf = pointer(float64(g.IntN(3)+1) * unit)
	}
}

func (g *Generator) odd() apiextensionsv1.JSONSchemaProps {
	if g.one(2) {
		return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: pointer(true)}
	}
	s := apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	switch g.IntN(3) {
	case 0:
		s.AnyOf = intOrString()
	case 1:
		s.AllOf = []apiextensionsv1.JSONSchemaProps{{AnyOf: intOrString()}, {Pattern: `^[a-z0-9]+$`}}
	}
	return s
}

func intOrString() []apiextensionsv1.JSONSchemaProps {
	return []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
}

// combine adds allOf, anyOf, oneOf or not.
func (g *Generator) combine(s *apiextensionsv1.JSONSchemaProps) {
	if s.XIntOrString {
		return
	}
	branches := func() (all []apiextensionsv1.JSONSchemaProps) {
		for range g.IntN(3) + 1 {
			all = append(all, g.branch(s, 2))
		}
		return all
	}
	switch g.IntN(4) {
	case 0:
		s.AllOf = branches()
	case 1:
		s.AnyOf = branches()
	case 2:
		s.OneOf = branches()
	default:
		b := g.branch(s, 2)
		s.Not = &b
	}
}

// branch is a value validation for what the schema describes.
func (g *Generator) branch(s *apiextensionsv1.JSONSchemaProps, depth int) apiextensionsv1.JSONSchemaProps {
	var b apiextensionsv1.JSONSchemaProps
	switch s.Type {
	case "object":
		for _, name := range sorted(s.Properties) {
			property := s.Properties[name]
			if name == "metadata" {
				continue
			}
			if g.one(3) {
				b.Required = append(b.Required, name)
			}
			if g.one(3) {
				if b.Properties == nil {
					b.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
				}
				b.Properties[name] = g.branch(&property, depth-1)
			}
		}
		if g.one(4) {
			b.MinProperties = pointer(int64(g.IntN(3)))
		}
	case "array":
		if g.one(2) {
			b.MinItems = pointer(int64(g.IntN(3)))
		}
		if g.one(2) && s.Items != nil {
			items := g.branch(s.Items.Schema, depth-1)
			b.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
		}
	case "string":
		text := g.text()
		text.Type = ""
		text.Format = ""
		b = text
	case "integer", "number":
		g.bounds(&b, 1)
	case "boolean":
		if g.one(2) {
			b.Enum = []apiextensionsv1.JSON{{Raw: []byte(`true`)}}
		}
	}
	if depth > 0 && g.one(5) {
		switch inner := g.branch(s, depth-1); g.IntN(4) {
		case 0:
			b.AllOf = []apiextensionsv1.JSONSchemaProps{inner}
		case 1:
			b.AnyOf = []apiextensionsv1.JSONSchemaProps{inner, g.branch(s, depth-1)}
		case 2:
			b.OneOf = []apiextensionsv1.JSONSchemaProps{inner, g.branch(s, depth-1)}
		default:
			b.Not = &inner
		}
	}
	return b
}
