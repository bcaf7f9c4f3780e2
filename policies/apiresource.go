package policies

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// APIResource describes a resource of an ordinary JSON API. Its definition, crds/apiresources.yaml, says what the
// fields mean and may hold.
type APIResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              APIResourceSpec `json:"spec"`
}

// APIResourceSpec says what the resource is.
type APIResourceSpec struct {
	Group             string                                        `json:"group"`
	Version           string                                        `json:"version"`
	Names             apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
	Paths             APIResourcePaths                              `json:"paths"`
	Envelope          string                                        `json:"envelope"`
	Fields            *APIResourceFields                            `json:"fields"`
	Schema            *apiextensionsv1.CustomResourceValidation     `json:"schema"`
	StatusSubresource string                                        `json:"statusSubresource"`
	// Scale is the scale subresource; nil where there is none.
	Scale               *apiextensionsv1.CustomResourceSubresourceScale `json:"scale"`
	Concurrency         string                                          `json:"concurrency"`
	UnconditionalUpdate string                                          `json:"unconditionalUpdate"`
	CreateOnUpdate      string                                          `json:"createOnUpdate"`
	YAMLBodies          string                                          `json:"yamlBodies"`
	FieldValidation     string                                          `json:"fieldValidation"`
	Backend             APIResourceBackend                              `json:"backend"`
}

// APIResourcePaths are path templates.
type APIResourcePaths struct {
	Collection string `json:"collection"`
	Item       string `json:"item"`
}

// APIResourceFields says where Bare objects keep what Kubernetes' objects keep in metadata, status and items.
type APIResourceFields struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Status  string `json:"status"`
	Items   string `json:"items"`
}

func (l *loader) apiResource(o *manifest.Object) {
	a := &APIResource{}
	if !l.own(o, a) {
		return
	}
	r := a.Spec.resource()
	compiled, ok := l.schemaOf(o, a, r)
	if !ok {
		return
	}
	loaded := loadedResource{Resource: r, compiledResource: compiledResource{schema: compiled}, from: o, path: "spec"}
	if a.Spec.Schema != nil {
		loaded.props = a.Spec.Schema.OpenAPIV3Schema
	}
	l.resources = append(l.resources, loaded)
}

// schemaOf compiles the schema of an APIResource; false is one that cannot be. Without a schema objects may be anything, but
// for the metadata of Kubernetes' objects, which is the same for all.
func (l *loader) schemaOf(o *manifest.Object, a *APIResource, r *resource.Resource) (*schema.Schema, bool) {
	path := field.NewPath("spec", "schema", "openAPIV3Schema")
	options := schema.Options{Path: path, Resource: r.Envelope == resource.Kubernetes, Namespaced: r.Namespaced, Scale: a.Spec.Scale}
	props := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	switch {
	case a.Spec.Schema != nil:
		extensions, ok := l.extensions(o, path)
		if !ok {
			return nil, false
		}
		props, options.Extensions = a.Spec.Schema.OpenAPIV3Schema, extensions[0]
	case !options.Resource:
		return nil, true
	}
	compiled, warnings, errs := schema.Compile(props, options)
	l.fields(o, Warning, warnings)
	l.fields(o, Error, errs)
	if len(errs) == 0 {
		l.planned(o, compiled.Programs())
	}
	return compiled, len(errs) == 0
}

// resource is the description by which requests are resolved.
func (s *APIResourceSpec) resource() *resource.Resource {
	r := &resource.Resource{
		Group:      s.Group,
		Version:    s.Version,
		Kind:       s.Names.Kind,
		ListKind:   s.Names.ListKind,
		Plural:     s.Names.Plural,
		Singular:   s.Names.Singular,
		ShortNames: s.Names.ShortNames,
		Categories: s.Names.Categories,
		Namespaced: strings.Contains(s.Paths.Item, "{namespace}"),
		Status:     s.StatusSubresource != "Disabled",
		Scale:      s.Scale != nil,
		Scaling:    scalingOf(s.Scale),
		Paths:      []string{s.Paths.Collection, s.Paths.Item},

		UnconditionalUpdate: s.UnconditionalUpdate == "Allowed",
		CreateOnUpdate:      s.CreateOnUpdate == "Allowed",
		YAML:                s.YAMLBodies == "Allowed",
	}
	completeNames(r)
	if s.Concurrency == resource.BestEffort.String() {
		r.Concurrency = resource.BestEffort
	}
	for _, v := range []resource.FieldValidation{resource.FieldValidationIgnore, resource.FieldValidationWarn, resource.FieldValidationStrict} {
		if s.FieldValidation == v.String() {
			r.FieldValidation = v
		}
	}
	fields := APIResourceFields{Status: "status"}
	if s.Fields != nil {
		fields = *s.Fields
	}
	if s.Envelope == resource.Kubernetes.String() {
		r.Fields.Version = fieldPath(fields.Version)
	} else {
		r.Envelope = resource.Bare
		r.Fields = s.bareFields(fields)
	}
	settings := s.Backend.settings()
	settings["status"] = s.StatusSubresource
	setBackend(r, settings)
	return r
}

// bareFields says where Bare objects keep what.
func (s *APIResourceSpec) bareFields(fields APIResourceFields) resource.Fields {
	bare := resource.Fields{
		Name:    fieldPath(fields.Name),
		Version: fieldPath(fields.Version),
		Status:  fieldPath(fields.Status),
		Items:   resource.FieldPath{},
	}
	if fields.Items != "" {
		bare.Items = fieldPath(fields.Items)
	}
	return bare
}

// scalingOf reads the paths of a scale subresource.
func scalingOf(s *apiextensionsv1.CustomResourceSubresourceScale) resource.Scaling {
	if s == nil {
		return resource.Scaling{}
	}
	path := func(text string) resource.FieldPath { return fieldPath(strings.TrimPrefix(text, ".")) }
	scaling := resource.Scaling{Replicas: path(s.SpecReplicasPath), StatusReplicas: path(s.StatusReplicasPath)}
	if s.LabelSelectorPath != nil {
		scaling.Selector = path(*s.LabelSelectorPath)
	}
	return scaling
}

// fieldPath reads "a.b"; "" is no field.
func fieldPath(text string) resource.FieldPath {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}
