package openapi

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
)

// annotation reports whether a keyword says nothing of what values are right.
func annotation(key string) bool {
	switch key {
	case "title", "description", "example", "examples", "deprecated", "externalDocs", "xml", "summary",
		"$comment", "$schema", "$id", "$defs", "definitions", "contentMediaType", "contentEncoding", "contentSchema", "default", "readOnly", "writeOnly":
		return true
	}
	return strings.HasPrefix(key, "x-") && !strings.HasPrefix(key, "x-kubernetes-") && !strings.HasPrefix(key, "x-admission-gateway-")
}

// enforced are the keywords that are translated, beside annotations.
var enforced = []string{
	"$ref", "allOf", "anyOf", "oneOf", "not", "type", "nullable", "enum", "const",
	"properties", "additionalProperties", "unevaluatedProperties", "patternProperties", "required", "minProperties", "maxProperties",
	"items", "minItems", "maxItems", "uniqueItems",
	"minLength", "maxLength", "pattern", "format",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"default", "readOnly", "writeOnly",
}

// unenforced names the keywords that are not translated.
func (b *builder) unenforced(c *conjunction) {
	for _, p := range c.parts {
		members(p.Node, func(m document.Node) {
			key := m.Key()
			if annotation(key) || slices.Contains(enforced, key) || strings.HasPrefix(key, "x-kubernetes-") || strings.HasPrefix(key, "x-admission-gateway-") {
				return
			}
			b.warn(m, "the keyword '%.80s' is not enforced", key)
		})
	}
}

// values are in all enumerations and constants.
func (b *builder) values(c *conjunction) (values []document.Node, listed bool) {
	values, listed = b.consts, b.listed
	for _, p := range c.parts {
		for _, key := range []string{"enum", "const"} {
			m, found := p.Get(key)
			if !found {
				continue
			}
			own := []document.Node{m}
			if key == "enum" {
				own = nil
				members(m, func(v document.Node) { own = append(own, v) })
			}
			if !listed {
				values, listed = own, true
				continue
			}
			values = slices.DeleteFunc(slices.Clone(values), func(v document.Node) bool {
				return !slices.ContainsFunc(own, func(o document.Node) bool { return document.EqualNodes(o, v) })
			})
		}
	}
	return values, listed
}

func (b *builder) enumeration(c *conjunction) {
	values, listed := b.values(c)
	if !listed {
		return
	}
	if len(values) == 0 {
		b.never()
		return
	}
	for _, v := range values {
		switch {
		case v.Kind() == document.Null:
			b.e.Beyond.Null = true
		case !b.fits(v):
			b.warn(v, "must be a value of the schema's type; it is left out of the enumeration")
		default:
			b.p.Enum = append(b.p.Enum, apiextensionsv1.JSON{Raw: slices.Clone(v.Raw())})
		}
	}
	if b.nullable {
		b.e.Beyond.Null = true
	}
	if len(b.p.Enum) == 0 {
		if at, found := c.get("enum"); found && !all(values, func(v document.Node) bool { return v.Kind() == document.Null }) {
			b.warn(at, "has no value of the schema's type; the enumeration is not enforced")
		}
	}
}

// fits reports whether a value has one of the types.
func (b *builder) fits(v document.Node) bool {
	if len(b.typed) == 0 {
		return true
	}
	name := v.Kind().String()
	if name == "number" && v.Kind() == document.Number {
		if _, whole := v.Int64(); whole && slices.Contains(b.typed, "integer") {
			return true
		}
	}
	return slices.Contains(b.typed, name)
}

// formats are the formats of strings that are checked, as Kubernetes understands them. What it
// understands otherwise than JSON Schema does is not among them: its durations are '1h30m', not
// 'PT1H30M'.
var formats = []string{
	"date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid", "mac", "cidr", "password",
	"uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "bsonobjectid", "datetime",
}

// hints are formats that say nothing of what values are right beyond the type.
var hints = []string{"int64", "double", "byte", "binary", "int-or-string", "quantity"}

func (b *builder) text(c *conjunction) {
	b.p.MinLength = b.most(c, "minLength")
	b.p.MaxLength = b.least(c, "maxLength")
	c.each("pattern", func(m document.Node) {
		pattern := m.Str()
		if converted := unicodeEscape.ReplaceAllString(pattern, `\x{$1}`); converted != pattern {
			pattern = converted
		}
		if _, err := regexp.Compile(pattern); err != nil {
			say := b.gap
			if jsonschema.IsMistaken(err) {
				say = b.warn
			}
			say(m, "is not enforced, because the expression is not one of RE2: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return
		}
		b.matches(strings.Clone(pattern))
	})
	b.format(c, func(format string) bool {
		return slices.Contains(formats, format) || b.t.options.kubernetes && format == "duration"
	})
	if format, _ := c.get("format"); format.Is("byte") && !b.t.options.kubernetes && len(b.typed) == 1 {
		b.matches(base64)
	}
}

func (b *builder) matches(pattern string) {
	switch {
	case b.p.Pattern == "":
		b.p.Pattern = pattern
	case b.p.Pattern != pattern:
		b.p.AllOf = append(b.p.AllOf, apiextensionsv1.JSONSchemaProps{Pattern: pattern})
	}
}

// base64 is the format 'byte'. Kubernetes' own expression for it does not know the empty string, which encodes nothing; its
// own kinds are read with lines of base64 too.
const base64 = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`

// unicodeEscape is how the expressions of ECMA-262 write a character by its number.
var unicodeEscape = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// format takes the formats that are checked; of others it says that they are not.
func (b *builder) format(c *conjunction, checked func(string) bool) {
	c.each("format", func(m document.Node) {
		format := m.Str()
		switch {
		case len(b.typed) != 1 || slices.Contains(hints, format):
		case !checked(format):
			b.gap(m, "the format '%.80s' is not enforced", format)
		case b.p.Format == "":
			b.p.Format = strings.Clone(format)
		}
	})
}

func (b *builder) number(c *conjunction) {
	for _, p := range c.parts {
		b.bound(p.Node, "minimum", "exclusiveMinimum", &b.p.Minimum, &b.p.ExclusiveMinimum, 1)
		b.bound(p.Node, "maximum", "exclusiveMaximum", &b.p.Maximum, &b.p.ExclusiveMaximum, -1)
	}
	c.each("multipleOf", func(m document.Node) {
		f, ok := m.Float64()
		switch {
		case !ok || f <= 0:
			b.warn(m, "must be greater than 0; it is not enforced")
		case b.p.MultipleOf == nil:
			b.p.MultipleOf = &f
		case *b.p.MultipleOf != f:
			b.p.AllOf = append(b.p.AllOf, apiextensionsv1.JSONSchemaProps{MultipleOf: &f})
		}
	})
	b.format(c, func(format string) bool {
		return format == "int32" && slices.Contains(b.typed, "integer") || format == "float" && slices.Contains(b.typed, "number")
	})
}

// bound takes the tighter of a bound and those before. In version 3.0 exclusiveMinimum is a boolean beside minimum, in 3.1 a
// number of its own.
func (b *builder) bound(n document.Node, inclusive, exclusive string, to **float64, isExclusive *bool, sign float64) {
	take := func(m document.Node, strict bool) {
		f, ok := m.Float64()
		if !ok || math.IsInf(f, 0) {
			b.warn(m, "must be a number; it is not enforced")
			return
		}
		if *to == nil || sign*f > sign**(*to) || f == **to && strict {
			*to, *isExclusive = &f, strict
		}
	}
	x, found := n.Get(exclusive)
	if m, has := n.Get(inclusive); has {
		take(m, found && x.Bool())
	}
	if found && x.Kind() == document.Number {
		take(x, true)
	}
}

// count is a number of characters, items or members.
func (b *builder) count(m document.Node) (int64, bool) {
	n, ok := m.Int64()
	if !ok || n < 0 {
		b.warn(m, "must be an integer of at least 0; it is not enforced")
		return 0, false
	}
	return n, true
}

// most is the largest of a keyword's values, least the smallest; nil without any.
func (b *builder) most(c *conjunction, key string) (most *int64) {
	c.each(key, func(m document.Node) {
		if n, ok := b.count(m); ok && (most == nil || n > *most) {
			most = &n
		}
	})
	return most
}

func (b *builder) least(c *conjunction, key string) (least *int64) {
	c.each(key, func(m document.Node) {
		if n, ok := b.count(m); ok && (least == nil || n < *least) {
			least = &n
		}
	})
	return least
}

// setDefault takes the default of a value that clients may set.
func (b *builder) setDefault(c *conjunction) {
	m, found := c.get("default")
	if !found || b.t.without[b.at] || b.at == "" || b.t.undefaulted || b.isLeftToAPI(c) {
		return
	}
	if b.t.options.unfilled {
		b.t.left[b.at] = true
		return
	}
	switch {
	case m.Kind() == document.Null && !b.nullable:
		return
	case b.t.options.kubernetes && isZero(m):
		return // Go's zero values, which Kubernetes' own encoding leaves out
	case m.Kind() != document.Null && !b.fits(m):
		b.say(m, "must be of the schema's type; the default is not applied")
		return
	case b.t.isJudged && !b.isRight(c, m):
		return
	}
	b.t.defaults = true
	if !b.t.options.kubernetes { // an API server fills in its own
		b.t.doc.filled[m.Index()] = true
	}
	b.p.Default = &apiextensionsv1.JSON{Raw: slices.Clone(m.Raw())}
}

// isRight reports whether a default is right by its own schema, and says so if it is not.
func (b *builder) isRight(c *conjunction, m document.Node) bool {
	for i, p := range c.parts {
		if i > 0 && (p.inherited || len(p.way) > 0) {
			continue // it belongs to a part that is asked
		}
		found := b.t.doc.schemas().Compile(p.Node).Check(m, jsonschema.Requests)
		if !found.Valid() {
			b.say(m, "the default is not applied: %s", found.Failures[0].Err.ErrorBody())
			return false
		}
	}
	return true
}

func isZero(n document.Node) bool {
	switch n.Kind() {
	case document.Null:
		return true
	case document.Bool:
		return !n.Bool()
	case document.Number:
		i, whole := n.Int64()
		return whole && i == 0
	case document.String:
		return n.Str() == ""
	}
	return n.Len() == 0
}

// decode reads a member into a Kubernetes type.
func (b *builder) decode(m document.Node, into any) {
	if err := json.Unmarshal(m.Raw(), into); err != nil {
		b.t.doc.report.refuse(m, "must be what Kubernetes has here: %s", err.Error())
	}
}
