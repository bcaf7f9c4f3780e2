package gatekeeper

import (
	_ "embed"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/schema"
)

// Group is the group of all kinds of constraints, and Version the version that they are kept in.
const (
	Group   = "constraints.gatekeeper.sh"
	Version = "v1beta1"
)

//go:embed constraint.yaml
var constraintYAML []byte

// constraintSchema is the schema of constraints, without their parameters.
var constraintSchema = sync.OnceValues(func() (*apiextensionsv1.JSONSchemaProps, error) {
	props := &apiextensionsv1.JSONSchemaProps{}
	return props, yaml.UnmarshalStrict(constraintYAML, props)
})

// The paths of the schema of parameters: in the definition of the constraints, and in the template.
const (
	definitionPath = "spec.validation.openAPIV3Schema.properties[spec].properties[parameters]"
	templatePath   = "spec.crd.spec.validation.openAPIV3Schema"
)

// compileSchema makes the schema of a template's constraints. The versions of templates before v1
// let parameters have what their schema does not know, unless they say otherwise.
func compileSchema(t *ConstraintTemplate) (*schema.Schema, field.ErrorList) {
	base, err := constraintSchema()
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	props := base.DeepCopy()
	parameters, err := parametersOf(t)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "crd", "spec", "validation", "openAPIV3Schema"),
			field.OmitValueType{}, err.Error())}
	}
	if parameters != nil {
		props.Properties["spec"].Properties["parameters"] = *parameters
	}
	kind := t.Spec.CRD.Spec.Names.Kind
	plural := strings.ToLower(kind)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural,
				ShortNames: t.Spec.CRD.Spec.Names.ShortNames,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
			}},
		},
	}
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		return nil, inTemplate(errs)
	}
	return versions[0].Schema, nil
}

// inTemplate gives findings about the definition of the constraints the paths of the template.
func inTemplate(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		path := strings.Replace(err.Field, "spec.versions[0].schema.openAPIV3Schema", "spec.validation.openAPIV3Schema",
			1)
		rest, ok := strings.CutPrefix(path, definitionPath)
		switch {
		case ok:
			err.Field = templatePath + rest
		case strings.HasPrefix(path, "spec.names"):
			err.Field = "spec.crd." + path
		default:
			err.Field = "spec.crd.spec"
		}
	}
	return errs
}

// Parameters returns the parameters that the schema of a template names, and whether constraints can have no others.
func Parameters(t *ConstraintTemplate) (names []string, isClosed bool) {
	props, err := parametersOf(t)
	if err != nil || props == nil || len(props.Properties) == 0 {
		return nil, false
	}
	return slices.Sorted(maps.Keys(props.Properties)), !ptr.Deref(props.XPreserveUnknownFields, false) &&
		props.AdditionalProperties == nil
}

// parametersOf is the schema of the parameters; nil if constraints have none.
func parametersOf(t *ConstraintTemplate) (*apiextensionsv1.JSONSchemaProps, error) {
	validation := t.Spec.CRD.Spec.Validation
	if validation == nil {
		validation = &Validation{}
	}
	isLegacy := !strings.HasSuffix(t.APIVersion, "/v1")
	if validation.LegacySchema != nil {
		isLegacy = *validation.LegacySchema
	}
	props := validation.OpenAPIV3Schema
	switch {
	case !isLegacy:
		return props, nil
	case props == nil:
		props = &apiextensionsv1.JSONSchemaProps{}
	}
	props = props.DeepCopy()
	return props, keepUnknown(props)
}

// keepUnknown lets every object of a schema have what the schema does not know.
func keepUnknown(props *apiextensionsv1.JSONSchemaProps) error {
	switch props.Type {
	case "", "object":
		props.XPreserveUnknownFields = ptr.To(true)
	case "array":
		if props.Items == nil {
			props.Items = &apiextensionsv1.JSONSchemaPropsOrArray{
				Schema: &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: ptr.To(true)}}
		}
	}
	for name, property := range props.Properties {
		if err := keepUnknown(&property); err != nil {
			return err
		}
		props.Properties[name] = property
	}
	if props.Items != nil {
		if props.Items.JSONSchemas != nil {
			return errors.New("must not have several schemas for the items of a list")
		}
		if err := keepUnknown(props.Items.Schema); err != nil {
			return err
		}
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		return keepUnknown(props.AdditionalProperties.Schema)
	}
	return nil
}
