package schema

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/format"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
)

// values compiles the keywords that look at the value itself.
func (c *compiler) values(s *Shape, p *apiextensions.JSONSchemaProps) error {
	var types []string
	switch {
	case p.XIntOrString:
		types = []string{"integer", "string"}
	case p.Type != "":
		types = []string{p.Type}
	}
	sp := spec.Schema{SchemaProps: spec.SchemaProps{Type: types, Format: p.Format}}
	if err := c.stripFormat(&sp); err != nil {
		return err
	}
	named := sp.Format
	if c.isDocument {
		named = ""
	}
	s.accept(types, named)

	var err error
	if p.MinLength != nil || p.MaxLength != nil || p.Pattern != "" || format.Of(sp.Format) != nil {
		s.text = &keyword.Text{Least: count(p.MinLength), Most: count(p.MaxLength), Shown: p.Pattern,
			Format: format.Of(sp.Format)}
		if p.Pattern != "" {
			if s.text.Pattern, err = c.pattern(p.Pattern); err != nil {
				return fmt.Errorf("pattern %q: %w", p.Pattern, err)
			}
		}
	}
	s.list.size, s.object.size = sizes(p.MinItems, p.MaxItems), sizes(p.MinProperties, p.MaxProperties)
	s.number = numbers(p, types, sp.Format)
	s.enum, err = enumeration(p.Enum)
	return err
}

func (c *compiler) pattern(text string) (*pattern.Pattern, error) {
	if p := c.patterns[text]; p != nil {
		return p, nil
	}
	p, err := pattern.New(text)
	if err == nil {
		c.patterns[text] = p
	}
	return p, err
}

// anyKind accepts every value.
var anyKind = [...]verdict{document.Null: match, document.Bool: match, document.Number: match, document.String: match,
	document.Object: match, document.Array: match}

// accept fills in what the type says about each kind of value. A format without a type asks for a string; that lists
// pass it, and lists pass a string with a format, is how Kubernetes reads both. In OpenAPI documents a format says
// nothing about the type, and is empty here.
func (s *Shape) accept(types []string, format string) {
	if len(types) == 0 && format == "" {
		s.accepts = anyKind
		return
	}
	s.typeName, s.typeCount = strings.Join(types, " or "), 2
	if s.null == nullIsValue || len(types) == 0 {
		s.accepts[document.Null] = match
	}
	numeric := false
	for _, t := range types {
		switch t {
		case "boolean":
			s.accepts[document.Bool] = match
		case "string":
			s.accepts[document.String] = match
		case "number":
			s.accepts[document.Number], numeric = match, true
		case "integer":
			s.accepts[document.Number], numeric = integral, true
		case "object":
			s.accepts[document.Object] = match
		case "array":
			s.accepts[document.Array] = match
		}
	}
	if format != "" && !numeric {
		s.accepts[document.String] = match
		s.accepts[document.Array] = match
		if len(types) == 0 {
			s.typeName = format
		}
	}
}

func count(p *int64) int64 {
	if p == nil {
		return -1
	}
	return max(*p, 0)
}

func sizes(least, most *int64) *keyword.Size {
	if least == nil && most == nil {
		return nil
	}
	return &keyword.Size{Least: count(least), Most: count(most)}
}

func numbers(p *apiextensions.JSONSchemaProps, types []string, format string) *keyword.Number {
	n := &keyword.Number{}
	if len(types) == 1 {
		switch {
		case types[0] == "integer" && format == "int32":
			n.Low, n.High = math.MinInt32, math.MaxInt32
		case types[0] == "number" && format == "float":
			n.IsSingle = true
		}
	}
	if p.Minimum != nil {
		n.Minimum = &keyword.Bound{Value: *p.Minimum, IsExclusive: p.ExclusiveMinimum}
	}
	if p.Maximum != nil {
		n.Maximum = &keyword.Bound{Value: *p.Maximum, IsExclusive: p.ExclusiveMaximum}
	}
	if p.MultipleOf != nil {
		n.MultipleOf = keyword.NewFactor(*p.MultipleOf)
	}
	if *n == (keyword.Number{}) {
		return nil
	}
	return n
}

func enumeration(values []apiextensions.JSON) (*keyword.Enum, error) {
	if len(values) == 0 {
		return nil, nil
	}
	nodes := make([]document.Node, len(values))
	for i, v := range values {
		raw, err := encode(v)
		if err != nil {
			return nil, err
		}
		d, err := document.Parse(raw, document.Limits{})
		if err != nil {
			return nil, err
		}
		nodes[i] = d.Root()
	}
	return keyword.NewEnum(nodes), nil
}

// Format is the name of the format that a string must have; "" if there is none that Kubernetes
// checks.
func (s *Shape) Format() string {
	if s == nil || s.text == nil || s.text.Format == nil {
		return ""
	}
	return s.text.Format.Name
}
