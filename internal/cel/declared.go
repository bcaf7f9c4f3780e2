package cel

import (
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A declaredSchema is a schema of which Kubernetes makes a type. It asks for the properties of a schema twice, and each
// time all of them would be copied.
type declaredSchema struct {
	openapi.Schema
	properties map[string]common.Schema
}

// declared returns a schema to make a type of; nil for none.
func declared(s *spec.Schema) common.Schema {
	if s == nil {
		return nil
	}
	return &declaredSchema{Schema: openapi.Schema{Schema: s}}
}

// Properties implements common.Schema.
func (s *declaredSchema) Properties() map[string]common.Schema {
	if s.properties == nil && s.Schema.Schema.Properties != nil {
		s.properties = make(map[string]common.Schema, len(s.Schema.Schema.Properties))
		for name, property := range s.Schema.Schema.Properties {
			s.properties[name] = declared(&property)
		}
	}
	return s.properties
}

// Items implements common.Schema.
func (s *declaredSchema) Items() common.Schema {
	if s.Schema.Schema.Items == nil {
		return nil
	}
	return declared(s.Schema.Schema.Items.Schema)
}

// AdditionalProperties implements common.Schema.
func (s *declaredSchema) AdditionalProperties() common.SchemaOrBool {
	if s.Schema.Schema.AdditionalProperties == nil {
		return nil
	}
	return &declaredOthers{openapi.SchemaOrBool{SchemaOrBool: s.Schema.Schema.AdditionalProperties}}
}

// WithTypeAndObjectMeta implements common.Schema.
func (s *declaredSchema) WithTypeAndObjectMeta() common.Schema {
	return declared(common.WithTypeAndObjectMeta(s.Schema.Schema))
}

// declaredOthers are the additional properties of a declaredSchema.
type declaredOthers struct{ openapi.SchemaOrBool }

// Schema implements common.SchemaOrBool.
func (o *declaredOthers) Schema() common.Schema { return declared(o.SchemaOrBool.SchemaOrBool.Schema) }
