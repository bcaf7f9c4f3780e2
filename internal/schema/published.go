package schema

import (
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Published is a schema as an API server publishes it: with the metadata that every resource has, if resource is set.
// It is meant for schemas that compile, and nil for others.
func Published(props *apiextensionsv1.JSONSchemaProps, resource bool) *spec.Schema {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal,
		nil); err != nil {
		return nil
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil
	}
	s := structural.ToKubeOpenAPI()
	if resource {
		withEnvelope(s)
	}
	return s
}

// withEnvelope gives a schema the members that every resource has, even if it describes them
// itself.
func withEnvelope(s *spec.Schema) {
	properties := maps.Clone(s.Properties)
	if properties == nil {
		properties = map[string]spec.Schema{}
	}
	properties["apiVersion"], properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	properties["metadata"] = *ObjectMeta()
	s.Properties = properties
}

// ObjectMeta is the schema of metadata, as Kubernetes publishes it.
func ObjectMeta() *spec.Schema {
	text, flag, whole, moment := *spec.StringProperty(), *spec.BoolProperty(), *spec.Int64Property(),
		*spec.DateTimeProperty()
	texts := *spec.MapProperty(&text)
	return structure(map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": whole, "creationTimestamp": moment, "deletionTimestamp": moment,
		"deletionGracePeriodSeconds": whole,
		"labels":                     texts, "annotations": texts, "finalizers": *spec.ArrayProperty(&text),
		"ownerReferences": *spec.ArrayProperty(structure(map[string]spec.Schema{
			"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
		})),
		"managedFields": *spec.ArrayProperty(structure(map[string]spec.Schema{
			"manager": text, "operation": text, "apiVersion": text, "time": moment, "fieldsType": text,
			"fieldsV1": *structure(nil), "subresource": text,
		})),
	})
}

func structure(properties map[string]spec.Schema) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
}
