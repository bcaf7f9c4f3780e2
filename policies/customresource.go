package policies

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// customResourceDefinition takes a CustomResourceDefinition. As on an API server a field that it does not know is
// left out with a warning: definitions are published for many versions of Kubernetes.
func (l *loader) customResourceDefinition(o *manifest.Object) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	decoder := schemaDecoder
	decoder.WarnUnknown = true
	if !l.read(decoder.Decode(o, crd)) {
		return
	}
	crd.Namespace = "" // as on an API server
	paths := make([]*field.Path, len(crd.Spec.Versions))
	for i := range paths {
		paths[i] = field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
	}
	extensions, ok := l.extensions(o, paths...)
	versions, warnings, errs := schema.CompileCRD(crd, extensions...)
	l.fields(o, Warning, warnings)
	l.fields(o, Error, errs)
	if !ok {
		return
	}
	var programs []*cel.Program
	for i, v := range versions {
		if !v.Served {
			continue
		}
		programs = append(programs, v.Schema.Programs()...)
		path := fmt.Sprintf("spec.versions[%d]", i)
		if !v.Status && hasStatus(&crd.Spec.Versions[i]) {
			// STAT-1
			l.at(o, Warning, path, "%s without the subresource `status` keeps the status that clients write, as in Kubernetes", v.Name)
		}
		r := resourceOf(crd, v)
		if subresources := crd.Spec.Versions[i].Subresources; subresources != nil {
			r.Scaling = scalingOf(subresources.Scale)
		}
		r.Selectable = selectableOf(crd.Spec.Versions[i].SelectableFields)
		l.annotated(o, crd, r)
		l.resources = append(l.resources, loadedResource{
			Resource:         r,
			compiledResource: compiledResource{schema: v.Schema, warning: v.Warning, convertible: convertible(crd)},
			props:            propsOf(&crd.Spec.Versions[i]),
			from:             o,
			path:             path,
		})
	}
	l.planned(o, programs)
}

// selectableOf are the fields that selectors may name; their paths consist of names alone.
func selectableOf(fields []apiextensionsv1.SelectableField) (paths []resource.FieldPath) {
	for _, f := range fields {
		paths = append(paths, strings.Split(strings.TrimPrefix(f.JSONPath, "."), "."))
	}
	return paths
}

// convertible tells whether versions differ in apiVersion alone.
func convertible(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter || crd.Spec.Conversion.Strategy == ""
}

// propsOf is the schema of a version, nil where it has none.
func propsOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// hasStatus tells whether objects of the version can have a status at all.
func hasStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	root := propsOf(v)
	if root == nil {
		return false
	}
	_, declared := root.Properties["status"]
	return declared || root.XPreserveUnknownFields != nil && *root.XPreserveUnknownFields
}

func resourceOf(crd *apiextensionsv1.CustomResourceDefinition, v schema.Version) *resource.Resource {
	names := crd.Spec.Names
	r := &resource.Resource{
		Group:      crd.Spec.Group,
		Version:    v.Name,
		Kind:       names.Kind,
		ListKind:   names.ListKind,
		Plural:     names.Plural,
		Singular:   names.Singular,
		ShortNames: names.ShortNames,
		Categories: names.Categories,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Status:     v.Status,
		Scale:      v.Scale,
	}
	completeNames(r)
	return r
}

// completeNames sets the names that follow from the kind.
func completeNames(r *resource.Resource) {
	if r.ListKind == "" {
		r.ListKind = r.Kind + "List"
	}
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.Kind)
	}
}
