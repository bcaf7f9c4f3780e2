package policies

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// customResourceDefinition takes a CustomResourceDefinition.
func (l *loader) customResourceDefinition(o *manifest.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	defined := reuse.OfObject(l.kept, &l.findings, o, "versions", nil,
		func(f *findings) definedVersions { return l.versions(f, o, crd) })
	var programs []*cel.Program
	for i, v := range defined.compiled {
		if !v.Served {
			continue
		}
		programs = append(programs, v.Schema.Programs()...)
		path := fmt.Sprintf("spec.versions[%d]", i)
		if !v.Status && hasStatus(&crd.Spec.Versions[i]) {
			// STAT-1
			l.At(o, Warning, path, "%s without the subresource `status` keeps the status that clients write, as in Kubernetes", v.Name)
		}
		r := resourceOf(crd, &crd.Spec.Versions[i], v)
		annotate(&l.findings, o, crd, r)
		l.resources = append(l.resources, loadedResource{
			Resource: r,
			compiled: compiledResource{schema: v.Schema, warning: v.Warning, convertible: convertible(crd),
				props: propsOf(&defined.written[i])},
			at: origin{o, path},
		})
	}
	l.plans.note(o, programs)
	l.failing(o, programs)
}

// definedVersions are the versions of a definition, compiled and as they are written; none if something is wrong with
// it.
type definedVersions struct {
	compiled []schema.Version
	written  []apiextensionsv1.CustomResourceDefinitionVersion
}

// versions compiles the versions of a definition. Definitions that differ in their names alone share them, unless there
// is something to say of them.
func (l *loader) versions(f *findings, o *manifest.Object,
	crd *apiextensionsv1.CustomResourceDefinition) definedVersions {
	key := keyOf(o)
	alike, found := reuse.Find[definedVersions](l.kept, key)
	if l.common != nil && found && schema.HasValidNames(crd) {
		return alike
	}
	before := len(f.Found)
	defined := definedVersions{versionsOf(f, o, *crd), crd.Spec.Versions}
	isDeprecated := func(v schema.Version) bool { return v.Warning != "" } // in words that have the names
	if len(f.Found) == before && len(defined.compiled) > 0 && !slices.ContainsFunc(defined.compiled, isDeprecated) {
		reuse.Keep(l.kept, key, defined)
	}
	return defined
}

// definitionKey is the key of the versions of a definition, whatever its names are.
type definitionKey [sha256.Size]byte

// keyOf returns the key of the versions of a definition.
func keyOf(o *manifest.Object) (key definitionKey) {
	h := sha256.New()
	write := func(n document.Node) { // a hash takes everything
		_, _ = fmt.Fprintf(h, "%d %d ", len(n.Key()), len(n.Raw()))
		_, _ = io.WriteString(h, n.Key())
		_, _ = h.Write(n.Raw())
	}
	for n := o.Document().Root().First(); n.Valid(); n = n.Next() {
		switch n.Key() {
		case "metadata":
		case "spec":
			for m := n.First(); m.Valid(); m = m.Next() {
				if m.Key() != "group" && m.Key() != "names" {
					write(m)
				}
			}
			_, _ = io.WriteString(h, "end of spec")
		default:
			write(n)
		}
	}
	h.Sum(key[:0])
	return key
}

// versionsOf compiles the versions of a definition; none if something is wrong with it.
func versionsOf(f *findings, o *manifest.Object, crd apiextensionsv1.CustomResourceDefinition) []schema.Version {
	crd.Namespace = "" // as on an API server
	paths := make([]*field.Path, len(crd.Spec.Versions))
	for i := range paths {
		paths[i] = field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
	}
	extensions, ok := extensionsOf(f, o, paths...)
	versions, warnings, errs := schema.CompileCRD(&crd, extensions...)
	f.Fields(o, Warning, warnings)
	f.Fields(o, Error, errs)
	if !ok {
		return nil
	}
	return versions
}

// selectableOf are the fields that selectors may name; their paths consist of names alone.
func selectableOf(fields []apiextensionsv1.SelectableField) (paths []resource.FieldPath) {
	for _, f := range fields {
		paths = append(paths, strings.Split(strings.TrimPrefix(f.JSONPath, "."), "."))
	}
	return paths
}

// convertible reports whether versions differ in apiVersion alone.
func convertible(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter ||
		crd.Spec.Conversion.Strategy == ""
}

// propsOf is the schema of a version, nil if it has none.
func propsOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// hasStatus reports whether objects of the version can have a status at all.
func hasStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	root := propsOf(v)
	if root == nil {
		return false
	}
	_, declared := root.Properties["status"]
	return declared || root.XPreserveUnknownFields != nil && *root.XPreserveUnknownFields
}

// resourceOf returns the description of a version by which requests are resolved.
func resourceOf(crd *apiextensionsv1.CustomResourceDefinition,
	declared *apiextensionsv1.CustomResourceDefinitionVersion, v schema.Version) *resource.Resource {
	r := &resource.Resource{
		Group:      crd.Spec.Group,
		Version:    v.Name,
		Names:      resourceNames(crd.Spec.Names),
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	r.Subresources.Status = v.Status
	if declared.Subresources != nil {
		r.Subresources.Scale = scalingOf(declared.Subresources.Scale)
	}
	r.Fields.Selectable = selectableOf(declared.SelectableFields)
	return r
}

// resourceNames returns the names of a definition, and names that follow from the kind for those it leaves out.
func resourceNames(n apiextensionsv1.CustomResourceDefinitionNames) resource.Names {
	return resource.Names{
		Kind:       n.Kind,
		ListKind:   cmp.Or(n.ListKind, n.Kind+"List"),
		Plural:     n.Plural,
		Singular:   cmp.Or(n.Singular, strings.ToLower(n.Kind)),
		ShortNames: n.ShortNames,
		Categories: n.Categories,
	}
}
