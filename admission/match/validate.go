package match

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxMatchConditions = 64

// Validate checks matchConstraints or matchResources, as kube-apiserver does when
// a policy is created.
func Validate(m *admissionv1.MatchResources, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.MatchPolicy != nil {
		errs = append(errs, OneOf(*m.MatchPolicy, fldPath.Child("matchPolicy"), admissionv1.Exact,
			admissionv1.Equivalent)...)
	}
	options := metav1validation.LabelSelectorValidationOptions{}
	if m.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(m.NamespaceSelector, options,
			fldPath.Child("namespaceSelector"))...)
	}
	if m.ObjectSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(m.ObjectSelector, options,
			fldPath.Child("objectSelector"))...)
	}
	for i := range m.ResourceRules {
		errs = append(errs, validateRule(&m.ResourceRules[i], fldPath.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateRule(&m.ExcludeResourceRules[i], fldPath.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateRule(r *admissionv1.NamedRuleWithOperations, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	operations := fldPath.Child("operations")
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(operations, ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(operations, r.Operations,
			"if '*' is present, must not specify other operations"))
	}
	for i, o := range r.Operations {
		errs = append(errs, OneOf(o, operations.Index(i),
			admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Delete,
			admissionv1.Connect)...)
	}
	errs = append(errs, validateNames(r.APIGroups, fldPath.Child("apiGroups"), "API groups", false)...)
	errs = append(errs, validateNames(r.APIVersions, fldPath.Child("apiVersions"), "API versions", true)...)
	errs = append(errs, validateResources(r.Resources, fldPath.Child("resources"))...)
	if r.Scope != nil {
		errs = append(errs, OneOf(*r.Scope, fldPath.Child("scope"), admissionv1.AllScopes, admissionv1.ClusterScope,
			admissionv1.NamespacedScope)...)
	}
	seen := sets.New[string]()
	for i, name := range r.ResourceNames {
		path := fldPath.Child("resourceNames").Index(i)
		for _, why := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(path, name, why))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(path, name))
		}
		seen.Insert(name)
	}
	return errs
}

func validateNames(names []string, fldPath *field.Path, what string, required bool) field.ErrorList {
	var errs field.ErrorList
	if len(names) == 0 {
		errs = append(errs, field.Required(fldPath, ""))
	}
	if len(names) > 1 && slices.Contains(names, anyName) {
		errs = append(errs, field.Invalid(fldPath, names, "if '*' is present, must not specify other "+what))
	}
	for i, name := range names {
		if required && name == "" {
			errs = append(errs, field.Required(fldPath.Index(i), ""))
		}
	}
	return errs
}

// validateResources refuses lists in which one entry is part of another, such as 'pods' beside '*'. As in
// kube-apiserver an entry with a subresource is compared with those before it alone, and '*' with the last entry
// without a subresource.
func validateResources(resources []string, fldPath *field.Path) field.ErrorList {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	var errs field.ErrorList
	wholly, everywhere := sets.New[string](), sets.New[string]() // resources given as x/*, subresources given as */x
	isPlainLast := false
	for i, name := range resources {
		path := fldPath.Index(i)
		if name == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		of, subresource, isPart := strings.Cut(name, "/")
		if !isPart {
			isPlainLast = name != anyName
			continue
		}
		if wholly.Has(of) {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("if '%s/*' is present, must not specify %s", of,
				name)))
		}
		if everywhere.Has(subresource) {
			errs = append(errs, field.Invalid(path, name,
				fmt.Sprintf("if '*/%s' is present, must not specify %s", subresource, name)))
		}
		if subresource == anyName {
			wholly.Insert(of)
		}
		if of == anyName {
			everywhere.Insert(subresource)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(fldPath, resources, "if '*/*' is present, must not specify other resources"))
	}
	if isPlainLast && slices.Contains(resources, anyName) {
		errs = append(errs, field.Invalid(fldPath, resources,
			"if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// ValidateConditions checks the match conditions of a policy.
func ValidateConditions(conditions []admissionv1.MatchCondition, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxMatchConditions {
		errs = append(errs, field.TooMany(fldPath, len(conditions), maxMatchConditions))
	}
	seen := sets.New[string]()
	for i, c := range conditions {
		if strings.TrimSpace(c.Expression) == "" {
			errs = append(errs, field.Required(fldPath.Index(i).Child("expression"), ""))
		}
		path := fldPath.Index(i).Child("name")
		if c.Name == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		for _, why := range utilvalidation.IsQualifiedName(c.Name) {
			errs = append(errs, field.Invalid(path, c.Name, why))
		}
		if seen.Has(c.Name) {
			errs = append(errs, field.Duplicate(path, c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// OneOf checks that a value is one of those supported.
func OneOf[T ~string](got T, fldPath *field.Path, supported ...T) field.ErrorList {
	if slices.Contains(supported, got) {
		return nil
	}
	slices.Sort(supported)
	return field.ErrorList{field.NotSupported(fldPath, got, supported)}
}
