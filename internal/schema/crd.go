package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/schema/graph"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// A Version is one version of a custom resource with its compiled schema.
type Version struct {
	Name   string
	Served bool
	Status bool // has the status subresource
	Scale  bool // has the scale subresource
	Schema *Schema
	// Warning is the text of the warning to clients of a deprecated version, "" for others.
	Warning string
}

// CompileCRD compiles every version of a CustomResourceDefinition. A definition that a Kubernetes
// API server refuses gives the server's own field errors and no versions; fields are named as the
// definition was written. Warnings are a server's own, and estimates of the cost of CEL rules that
// a server would refuse. The definition is not changed. extensions hold what the schemas of the
// versions say in the gateway's own keywords, in the order of the versions; there may be fewer.
func CompileCRD(crd *apiextensionsv1.CustomResourceDefinition,
	extensions ...*Extensions) (versions []Version, warnings, errs field.ErrorList) {
	internal, err := internalOf(crd.DeepCopy())
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(field.NewPath("spec"), wording.Omitted, err.Error())}
	}
	warnings, errs = checkDefinition(internal)
	if len(errs) > 0 {
		return nil, warnings, errs
	}
	c := newCompiler()
	for i := range internal.Spec.Versions {
		var said *Extensions
		if i < len(extensions) {
			said = extensions[i]
		}
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		v, problems := c.version(internal, &internal.Spec.Versions[i], said, path)
		versions, errs = append(versions, v), append(errs, problems...)
	}
	if len(errs) > 0 {
		return nil, warnings, errs
	}
	return versions, warnings, nil
}

// internalOf returns a definition as a server checks it. The definition is changed.
func internalOf(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	return internal, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd,
		internal, nil)
}

// HasValidNames reports whether there is nothing to say of a definition but of the schemas of its versions, and of the
// fields in them that it names.
func HasValidNames(crd *apiextensionsv1.CustomResourceDefinition) bool {
	bare := *crd
	bare.Spec.Versions = slices.Clone(crd.Spec.Versions)
	for i := range bare.Spec.Versions {
		v := &bare.Spec.Versions[i]
		v.SelectableFields = nil
		v.Schema = &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	}
	internal, err := internalOf(bare.DeepCopy())
	if err != nil {
		return false
	}
	warnings, errs := checkDefinition(internal)
	return len(warnings)+len(errs) == 0
}

func (c *compiler) version(crd *apiextensions.CustomResourceDefinition,
	from *apiextensions.CustomResourceDefinitionVersion, said *Extensions, path *field.Path) (Version,
	field.ErrorList) {
	v := Version{Name: from.Name, Served: from.Served}
	if from.Deprecated {
		v.Warning = deprecationOf(&crd.Spec, v.Name)
		if from.DeprecationWarning != nil {
			v.Warning = *from.DeprecationWarning
		}
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(crd, v.Name)
	if err != nil {
		return v, field.ErrorList{field.Invalid(path, wording.Omitted, err.Error())}
	}
	definition, err := apiextensions.GetSchemaForVersion(crd, v.Name)
	if err != nil {
		return v, field.ErrorList{field.Invalid(path, wording.Omitted, err.Error())}
	}
	var errs field.ErrorList
	if v.Schema, errs = c.schema(definition.OpenAPIV3Schema,
		Options{Path: path, Resource: true, Extensions: said}); len(errs) > 0 {
		return v, errs
	}
	v.Schema.metadata = &meta.Rules{Namespaced: crd.Spec.Scope == apiextensions.NamespaceScoped}
	if subresources != nil {
		v.Status = subresources.Status != nil
		v.Scale = subresources.Scale != nil
		v.Schema.scale = newScale(subresources.Scale)
	}
	return v, nil
}

// deprecationOf returns the warning to clients of a deprecated version if its author gave none. As on an API server it
// names the version of the greatest stability that is served, greater than the deprecated one, and not deprecated
// itself, and among such versions the newest.
func deprecationOf(crd *apiextensions.CustomResourceDefinitionSpec, deprecated string) string {
	better := ""
	for _, v := range crd.Versions {
		if v.Served && !v.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, cmp.Or(better, deprecated)) > 0 {
			better = v.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Group, deprecated, crd.Names.Kind)
	if better != "" {
		text += fmt.Sprintf("; use %s/%s %s", crd.Group, better, crd.Names.Kind)
	}
	return text
}

// Options say what kind of object a schema is of.
type Options struct {
	// Path is the location of the schema in its file, for errors.
	Path *field.Path
	// Resource is set for objects with the envelope of Kubernetes: kind, apiVersion and metadata
	// are known even if the schema does not describe them, and metadata is checked.
	Resource bool
	// Namespaced reports whether metadata may have a namespace.
	Namespaced bool
	// AnyName lets names be whatever can stand in a path, as names of some of Kubernetes' own kinds may; else they are
	// DNS subdomains.
	AnyName bool
	// MayRepeat lets lists of type set and map repeat themselves, as Kubernetes does in its own kinds: there the type
	// says how lists are merged.
	MayRepeat bool
	// Scale says what the scale subresource reads; nil if there is none.
	Scale *apiextensionsv1.CustomResourceSubresourceScale
	// Check says which values are valid by the schema of a document, and Use what the values are.
	Check *graph.Schema
	Use   graph.Use
	// Declared is the schema of a document as far as expressions, and Kubernetes' checks of its own keywords, need it;
	// nil if it has no such keywords.
	Declared *apiextensionsv1.JSONSchemaProps
	// DefaultsNull lets a default take the place of null wherever there is one, also where null is a value.
	DefaultsNull bool
	// Extensions holds the gateway's own keywords of the schema; nil if there are none.
	Extensions *Extensions
}

// Compile compiles a schema that belongs to no CustomResourceDefinition. What holds for the schemas of custom resources
// holds for it.
func Compile(props *apiextensionsv1.JSONSchemaProps, o Options) (s *Schema, warnings, errs field.ErrorList) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal,
		nil); err != nil {
		return nil, nil, field.ErrorList{field.Invalid(o.Path, wording.Omitted, err.Error())}
	}
	if internal.Type != "object" && (o.Resource || internal.Type != "array") {
		expected := "must be object or array at the root"
		if o.Resource {
			expected = "must be object at the root"
		}
		return nil, nil, field.ErrorList{field.Invalid(o.Path.Child("type"), internal.Type, expected)}
	}
	if warnings, errs = checkSchema(internal, o); len(errs) > 0 {
		return nil, warnings, errs
	}
	c := newCompiler()
	c.mayRepeat, c.isDocument, c.defaultsNull = o.MayRepeat, o.Extensions != nil, o.DefaultsNull
	if s, errs = c.schema(internal, o); len(errs) > 0 {
		return nil, warnings, errs
	}
	if o.Resource {
		s.metadata = &meta.Rules{Namespaced: o.Namespaced, AnyName: o.AnyName}
	}
	s.scale = newScale((*apiextensions.CustomResourceSubresourceScale)(o.Scale))
	return s, warnings, nil
}

// checkSchema has Kubernetes check a schema as a custom resource's. The schema of an object without
// envelope is checked as the schema of a field of one.
func checkSchema(props *apiextensions.JSONSchemaProps, o Options) (warnings, errs field.ErrorList) {
	root, prefix := props, "spec.versions[0].schema.openAPIV3Schema"
	if !o.Resource {
		root = &apiextensions.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensions.JSONSchemaProps{"object": *props}}
		prefix += ".properties[object]"
	}
	unpruned := false
	warnings, errs = checkDefinition(&apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "objects.schema.example"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "schema.example",
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: "objects", Singular: "object", Kind: "Object", ListKind: "ObjectList",
			},
			Scope:                 apiextensions.ClusterScoped,
			Version:               "v1",
			Versions:              []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: root},
			Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
			PreserveUnknownFields: &unpruned,
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	})
	for _, list := range []field.ErrorList{warnings, errs} {
		for _, err := range list {
			rest, _ := strings.CutPrefix(err.Field, prefix)
			err.Field = strings.TrimPrefix(pathText(o.Path)+rest, ".")
		}
	}
	return warnings, errs
}

func pathText(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// checkDefinition applies Kubernetes' own validation to a definition.
func checkDefinition(crd *apiextensions.CustomResourceDefinition) (warnings, errs field.ErrorList) {
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
		err.Field = written(err.Field)
		if !wording.Reword(err) {
			continue
		}
		if isCostEstimate(err) {
			warnings = append(warnings, err)
			continue
		}
		errs = append(errs, err)
	}
	return append(warnings, advice(crd)...), errs
}

// isCostEstimate reports whether a refusal rests on the static estimate of what CEL rules may cost.
// What they do cost is counted when they run.
func isCostEstimate(err *field.Error) bool {
	return err.Type == field.ErrorTypeForbidden &&
		(strings.Contains(err.Detail, "exceeds budget by factor of") ||
			strings.Contains(err.Detail, "exceeding cost limit for entire OpenAPIv3 schema"))
}

// written is the field as it stands in the file. What all versions have in common Kubernetes checks
// in fields of the definition that its version 1 does not have.
func written(path string) string {
	for _, moved := range []struct{ from, to string }{
		{"spec.validation.", "spec.versions[0].schema."},
		{"spec.subresources.", "spec.versions[0].subresources."},
		{"spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"},
		{"spec.selectableFields", "spec.versions[0].selectableFields"},
	} {
		if rest, ok := strings.CutPrefix(path, moved.from); ok {
			return moved.to + rest
		}
	}
	return path
}

// advice returns the warnings of a server when a definition is created, and those about messages by the API
// conventions.
func advice(crd *apiextensions.CustomResourceDefinition) (warnings field.ErrorList) {
	at := func(root *field.Path, schema *apiextensions.JSONSchemaProps) {
		walkSchema(schema, root, func(s *apiextensions.JSONSchemaProps, path *field.Path) {
			if s.Format != "" {
				sp := spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
				for _, name := range apiservervalidation.GetUnrecognizedFormats(&sp,
					environment.DefaultCompatibilityVersion()) {
					warnings = append(warnings,
						field.Invalid(path.Child("format"), name, "unrecognized format, which is not checked"))
				}
			}
			if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
				if t := s.Items.Schema.Type; t == "object" || t == "array" {
					warnings = append(warnings, field.Invalid(path.Child("x-kubernetes-list-type"), "set",
						fmt.Sprintf("for items of type '%s' is not supported by server-side apply or CEL validation rules", t)))
				}
			}
			warnings = append(warnings, adviceOn(s, path)...)
		})
	}
	for i, v := range crd.Spec.Versions {
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		if v.Schema != nil {
			at(path, v.Schema.OpenAPIV3Schema)
		} else if i == 0 && crd.Spec.Validation != nil {
			at(path, crd.Spec.Validation.OpenAPIV3Schema)
		}
	}
	return warnings
}

// walkSchema visits a schema and every schema in it, in a fixed order.
func walkSchema(s *apiextensions.JSONSchemaProps, path *field.Path,
	visit func(*apiextensions.JSONSchemaProps, *field.Path)) {
	if s == nil {
		return
	}
	visit(s, path)
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		sub := s.Properties[name]
		walkSchema(&sub, path.Child("properties").Key(name), visit)
	}
	if s.AdditionalProperties != nil {
		walkSchema(s.AdditionalProperties.Schema, path.Child("additionalProperties"), visit)
	}
	if s.Items != nil {
		walkSchema(s.Items.Schema, path.Child("items"), visit)
	}
	for _, group := range []struct {
		name    string
		schemas []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
		for i := range group.schemas {
			walkSchema(&group.schemas[i], path.Child(group.name).Index(i), visit)
		}
	}
	walkSchema(s.Not, path.Child("not"), visit)
}

// schema turns a schema that was checked into shapes.
func (c *compiler) schema(props *apiextensions.JSONSchemaProps, o Options) (*Schema, field.ErrorList) {
	root, structural, err := c.structural(props, o.Resource)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(o.Path, wording.Omitted, err.Error())}
	}
	s := &Schema{root: root, resource: o.Resource}
	if c.hasEnvelope {
		s.meta = newMetadata(false)
	}
	if errs := c.extend(s, structural, o.Extensions); len(errs) > 0 {
		return nil, errs
	}
	s.prepare()
	return s, nil
}

// pruneDefaults takes out of defaults what their schemas do not know. The library takes the root for an object with the
// envelope of Kubernetes: it gives a bare one, whose metadata is the author's, a place below such a root.
func pruneDefaults(s *structuralschema.Structural, resource bool) error {
	if resource {
		return structuraldefaulting.PruneDefaults(s)
	}
	root := &structuralschema.Structural{
		Generic:    structuralschema.Generic{Type: "object"},
		Properties: map[string]structuralschema.Structural{"object": *s},
	}
	err := structuraldefaulting.PruneDefaults(root)
	*s = root.Properties["object"]
	return err
}

func (c *compiler) structural(props *apiextensions.JSONSchemaProps,
	resource bool) (*Shape, *structuralschema.Structural, error) {
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, nil, err
	}
	if err := pruneDefaults(structural, resource); err != nil {
		return nil, nil, err
	}
	root, err := c.shape(props, structural, resource)
	return root, structural, err
}
