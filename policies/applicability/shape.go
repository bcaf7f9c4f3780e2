package applicability

import (
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
)

// shapeOf returns what a schema allows, as far as expressions can be judged by it.
func shapeOf(s *apiextensionsv1.JSONSchemaProps) *outcome.Shape {
	if s.Nullable || s.XIntOrString {
		return &outcome.Shape{}
	}
	shape := &outcome.Shape{Type: s.Type, Min: s.Minimum, Max: s.Maximum}
	if s.Type == "integer" && s.ExclusiveMinimum {
		shape.Min = moved(s.Minimum, 1)
	}
	if s.Type == "integer" && s.ExclusiveMaximum {
		shape.Max = moved(s.Maximum, -1)
	}
	switch s.Type {
	case "string":
		shape.MinSize, shape.MaxSize = float(s.MinLength), float(s.MaxLength)
		if s.Format != "" {
			return &outcome.Shape{} // an expression may see a time, or bytes
		}
		shape.Enum = textsOf(s.Enum)
	case "array":
		shape.MinSize, shape.MaxSize = float(s.MinItems), float(s.MaxItems)
		if s.Items != nil && s.Items.Schema != nil {
			shape.Items = shapeOf(s.Items.Schema)
			shape.Items.IsSet = true
		}
	case "object":
		shape.MinSize, shape.MaxSize = float(s.MinProperties), float(s.MaxProperties)
		shape.Fields = make(map[string]*outcome.Shape, len(s.Properties))
		for name, property := range s.Properties {
			field := shapeOf(&property)
			field.IsSet = slices.Contains(s.Required, name) && !property.Nullable || property.Default != nil
			shape.Fields[name] = field
		}
	}
	return shape
}

func moved(f *float64, by float64) *float64 {
	if f == nil {
		return nil
	}
	at := *f + by
	return &at
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// textsOf returns an enumeration of strings; nil for any other.
func textsOf(enum []apiextensionsv1.JSON) (texts []string) {
	for _, one := range enum {
		var text string
		if json.Unmarshal(one.Raw, &text) != nil {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}
