package schematest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Kubernetes checks the objects of a schema as a Kubernetes API server does.
type Kubernetes struct {
	// Namespaced reports whether objects have a namespace.
	Namespaced bool

	structural *structuralschema.Structural
	validator  apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// NewKubernetes prepares the schema of a resource as an API server does.
func NewKubernetes(props *apiextensionsv1.JSONSchemaProps) (*Kubernetes, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), internal,
		nil); err != nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	s = s.DeepCopy()
	if err := structuraldefaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	v, _, err := apiservervalidation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	return &Kubernetes{structural: s, validator: v, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}, nil
}

// Decode reads an object as Kubernetes does.
func Decode(raw []byte) (map[string]any, error) {
	var v map[string]any
	err := json.Unmarshal(raw, &v)
	return v, err
}

// Encode writes an object as Kubernetes does.
func Encode(obj map[string]any) []byte {
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return raw
}

// Prune removes what the schema does not know and returns its paths, sorted as a server lists them.
func (j *Kubernetes) Prune(obj map[string]any) (unknown []string, err error) {
	for _, name := range []string{"kind", "apiVersion"} {
		if v, found := obj[name]; found {
			if _, ok := v.(string); !ok {
				return nil, fmt.Errorf("%s must be a string", name)
			}
		}
	}
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown,
		pruning.PruneWithOptions(obj, j.structural, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(obj, j.structural)
	fieldErr, paths := objectmeta.CoerceWithOptions(nil, obj, j.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fieldErr != nil {
		return nil, fieldErr
	}
	unknown = append(unknown, paths...)
	if found {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// Default fills in defaults.
func (j *Kubernetes) Default(obj map[string]any) { structuraldefaulting.Default(obj, j.structural) }

// A Failure holds the parts of a field error that can be compared.
type Failure struct {
	Type  field.ErrorType
	Field string
}

// Validate checks an object, and an update if old is not nil. The failures are sorted and each is
// there once.
func (j *Kubernetes) Validate(obj, old map[string]any) ([]Failure, error) {
	ctx := context.Background()
	meta, _, err := objectmeta.GetObjectMeta(obj, false)
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	if meta == nil {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), ""))
	} else {
		if meta.Name == "" && meta.GenerateName != "" {
			meta.Name = "generated"
		}
		errs = append(errs, validation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil, j.Namespaced,
			validation.NameIsDNSSubdomain, field.NewPath("metadata"), false)...)
	}
	var celOptions []cel.Option
	if old == nil {
		errs = append(errs, apiservervalidation.ValidateCustomResource(nil, obj, j.validator)...)
	} else {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: j.structural})
		celOptions = append(celOptions, cel.WithRatcheting(correlated))
		errs = append(errs, apiservervalidation.ValidateCustomResourceUpdate(nil, obj, old, j.validator,
			apiservervalidation.WithRatcheting(correlated))...)
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, j.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, j.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, j.structural, obj)...)
	}
	if j.rules != nil {
		if blocking(errs) {
			errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		} else {
			var before any
			if old != nil {
				before = old
			}
			found, _ := j.rules.Validate(ctx, nil, j.structural, obj, before, celconfig.RuntimeCELCostBudget,
				celOptions...)
			errs = append(errs, found...)
		}
	}
	return Failures(errs)
}

func blocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

var (
	rangeError = regexp.MustCompile(`^Checked value must be of type (\w+) (?:with format (\w+)|\(default format\)) in (.*)$`)
	logicError = regexp.MustCompile(`^"(.*)" must (?:validate (at least one schema|one and only one schema|all the schemas)|not validate the schema) \(`)
	key        = regexp.MustCompile(`\[([^\]]*)\]`)
)

// Failures makes errors comparable, or says why they are not: sorted, each once, fields that
// go-openapi names only in its messages named, keys and indices behind dots, and without what one
// failure alone is reported as twice.
func Failures(errs field.ErrorList) ([]Failure, error) {
	var all []Failure
	for _, err := range errs {
		if strings.HasPrefix(err.Detail, "invalid data, expected int, got float64") {
			return nil, errors.New("rules read 1.0 and 1e1 as integers here, and not at all there: " + err.Detail)
		}
		f := Failure{err.Type, err.Field}
		if err.Field == "<nil>" && err.Type == field.ErrorTypeInvalid {
			if m := rangeError.FindStringSubmatch(err.Detail); m != nil {
				if m[2] == "" {
					continue // the type is wrong, and reported as that too
				}
				f.Field = m[3]
			} else if m := logicError.FindStringSubmatch(err.Detail); m != nil {
				if m[2] == "all the schemas" {
					continue // the failures of the branches are there
				}
				f.Field = m[1]
			}
			if strings.Contains(err.Detail, "value must be of type") && f.Field == "<nil>" {
				return nil, errors.New("a bound that its type cannot hold: " + err.Detail)
			}
		}
		f.Field = strings.TrimPrefix(key.ReplaceAllString(f.Field, ".$1"), ".")
		if f.Field == "" {
			f.Field = "<nil>"
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Failure) int {
		if c := strings.Compare(a.Field, b.Field); c != 0 {
			return c
		}
		return strings.Compare(string(a.Type), string(b.Type))
	})
	all = slices.Compact(all)
	// What the type of a value is, int-or-string schemas say twice.
	return slices.DeleteFunc(all, func(f Failure) bool {
		return f.Type == field.ErrorTypeInvalid && slices.Contains(all, Failure{field.ErrorTypeTypeInvalid, f.Field})
	}), nil
}

// Coerce writes the metadata of embedded resources as Kubernetes does.
func (j *Kubernetes) Coerce(obj map[string]any) error {
	if err := objectmeta.Coerce(nil, obj, j.structural, false, false); err != nil {
		return err
	}
	return nil
}

// Text is a schema for people to read.
func Text(props *apiextensionsv1.JSONSchemaProps) string {
	raw, err := json.Marshal(props)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
