package vap

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What kube-apiserver's own validation of policies refuses is refused here, with its words. That validation is in
// k8s.io/kubernetes, which cannot be imported.

const (
	maxMatchConditions  = 64
	maxAuditAnnotations = 20
	maxAnnotationBytes  = 5 << 10 // of a valueExpression
)

func validatePolicy(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, fldPath := &p.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.FailurePolicy != nil {
		errs = append(errs, oneOf(*spec.FailurePolicy, fldPath.Child("failurePolicy"), admissionv1.Fail, admissionv1.Ignore)...)
	}
	if spec.ParamKind != nil {
		errs = append(errs, validateParamKind(spec.ParamKind, fldPath.Child("paramKind"))...)
	}
	if spec.MatchConstraints == nil {
		errs = append(errs, field.Required(fldPath.Child("matchConstraints"), ""))
	} else {
		errs = append(errs, validateMatch(spec.MatchConstraints, fldPath.Child("matchConstraints"))...)
		if len(spec.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(fldPath.Child("matchConstraints", "resourceRules"), ""))
		}
	}
	errs = append(errs, validateConditions(spec.MatchConditions, fldPath.Child("matchConditions"))...)
	errs = append(errs, validateVariables(spec.Variables, fldPath.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(fldPath.Child("validations"), why), field.Required(fldPath.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], fldPath.Child("validations").Index(i))...)
	}
	return append(errs, validateAnnotations(p.Name, spec.AuditAnnotations, fldPath.Child("auditAnnotations"))...)
}

func validateParamKind(k *admissionv1.ParamKind, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if k.APIVersion == "" {
		errs = append(errs, field.Required(fldPath.Child("apiVersion"), ""))
	}
	if k.Kind == "" {
		errs = append(errs, field.Required(fldPath.Child("kind"), ""))
	}
	if len(errs) == 0 {
		errs = append(errs, field.Forbidden(fldPath, "may not be set: this gateway reads no parameter objects"))
	}
	return errs
}

func oneOf[T ~string](got T, fldPath *field.Path, supported ...T) field.ErrorList {
	if slices.Contains(supported, got) {
		return nil
	}
	slices.Sort(supported)
	return field.ErrorList{field.NotSupported(fldPath, got, supported)}
}

func validateMatch(m *admissionv1.MatchResources, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.MatchPolicy != nil {
		errs = append(errs, oneOf(*m.MatchPolicy, fldPath.Child("matchPolicy"), admissionv1.Exact, admissionv1.Equivalent)...)
	}
	options := metav1validation.LabelSelectorValidationOptions{}
	if m.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(m.NamespaceSelector, options, fldPath.Child("namespaceSelector"))...)
	}
	if m.ObjectSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(m.ObjectSelector, options, fldPath.Child("objectSelector"))...)
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
		errs = append(errs, field.Invalid(operations, r.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, o := range r.Operations {
		errs = append(errs, oneOf(o, operations.Index(i),
			admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)...)
	}
	errs = append(errs, validateNames(r.APIGroups, fldPath.Child("apiGroups"), "API groups", false)...)
	errs = append(errs, validateNames(r.APIVersions, fldPath.Child("apiVersions"), "API versions", true)...)
	errs = append(errs, validateResources(r.Resources, fldPath.Child("resources"))...)
	if r.Scope != nil {
		errs = append(errs, oneOf(*r.Scope, fldPath.Child("scope"), admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
	}
	seen := sets.New[string]()
	for i, name := range r.ResourceNames {
		path := fldPath.Child("resourceNames").Index(i)
		switch {
		case name == "":
			errs = append(errs, field.Required(path, ""))
		case seen.Has(name):
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

// validateResources refuses lists in which one entry is part of another, such as 'pods' beside '*'.
func validateResources(resources []string, fldPath *field.Path) field.ErrorList {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	var errs field.ErrorList
	wholly := sets.New[string]() // resources given as x/*
	everywhere := sets.New[string]()
	alone := false
	for i, name := range resources {
		if name == "" {
			errs = append(errs, field.Required(fldPath.Index(i), ""))
			continue
		}
		if strings.Contains(name, "/") {
			r := split(name)
			switch {
			case r.subresource == anyName && r.resource != anyName:
				wholly.Insert(r.resource)
			case r.resource == anyName:
				everywhere.Insert(r.subresource)
			}
		}
	}
	for i, name := range resources {
		r := split(name)
		switch path := fldPath.Index(i); {
		case strings.Contains(name, "/") && r.subresource != anyName && r.resource != anyName && (wholly.Has(r.resource) || everywhere.Has(r.subresource)):
			errs = append(errs, field.Invalid(path, name, "if another entry covers this resource or subresource, must not specify it"))
		case name == anyName || name == "*/*":
			alone = true
		}
	}
	if alone && len(resources) > 1 {
		errs = append(errs, field.Invalid(fldPath, resources, "if '*' or '*/*' is present, must not specify other resources"))
	}
	return errs
}

func validateConditions(conditions []admissionv1.MatchCondition, fldPath *field.Path) field.ErrorList {
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

func validateVariables(variables []admissionv1.Variable, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range variables {
		name := fldPath.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(name, "name is not specified"))
		case !isIdentifier(v.Name):
			errs = append(errs, field.Invalid(name, v.Name, "must be a valid CEL identifier"))
		case seen.Has(v.Name):
			errs = append(errs, field.Duplicate(name, v.Name))
		}
		seen.Insert(v.Name)
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(fldPath.Index(i).Child("expression"), "expression is not specified"))
		}
	}
	return errs
}

// reserved are the words that CEL's grammar reserves.
var reserved = sets.New("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while")

// isIdentifier tells whether the text is an identifier of CEL: [_a-zA-Z][_a-zA-Z0-9]*, and no reserved word.
func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return false
	}
	return s != "" && !reserved.Has(s)
}

func validateValidation(v *admissionv1.Validation, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(fldPath.Child("expression"), "expression is not specified"))
	}
	if v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "" {
		errs = append(errs, field.Invalid(fldPath.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(fldPath.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.Contains(message, "\n"):
		errs = append(errs, field.Invalid(fldPath.Child("message"), v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		errs = append(errs, oneOf(*v.Reason, fldPath.Child("reason"),
			metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
	}
	return errs
}

func validateAnnotations(policy string, annotations []admissionv1.AuditAnnotation, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > maxAuditAnnotations {
		errs = append(errs, field.Invalid(fldPath, annotations, "must not have more than 20 auditAnnotations"))
	}
	seen := sets.New[string]()
	for i, a := range annotations {
		key := fldPath.Index(i).Child("key")
		if a.Key == "" {
			errs = append(errs, field.Required(key, ""))
		} else {
			for _, why := range utilvalidation.IsQualifiedName(policy + "/" + a.Key) {
				errs = append(errs, field.Invalid(key, a.Key, "must be a valid part of a qualified name: "+why))
			}
			if seen.Has(a.Key) {
				errs = append(errs, field.Duplicate(key, a.Key))
			}
			seen.Insert(a.Key)
		}
		value := fldPath.Index(i).Child("valueExpression")
		switch n := len(strings.TrimSpace(a.ValueExpression)); {
		case n == 0:
			errs = append(errs, field.Required(value, "valueExpression is not specified"))
		case n > maxAnnotationBytes:
			errs = append(errs, field.TooLong(value, "", maxAnnotationBytes))
		}
	}
	return errs
}

func validateBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	spec, fldPath := &b.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.PolicyName == "" {
		errs = append(errs, field.Required(fldPath.Child("policyName"), ""))
	} else {
		for _, why := range utilvalidation.IsDNS1123Subdomain(spec.PolicyName) {
			errs = append(errs, field.Invalid(fldPath.Child("policyName"), spec.PolicyName, why))
		}
	}
	if spec.ParamRef != nil {
		errs = append(errs, field.Forbidden(fldPath.Child("paramRef"), "may not be set: this gateway reads no parameter objects"))
	}
	if spec.MatchResources != nil {
		errs = append(errs, validateMatch(spec.MatchResources, fldPath.Child("matchResources"))...)
	}
	return append(errs, validateActions(spec.ValidationActions, fldPath.Child("validationActions"))...)
}

func validateActions(actions []admissionv1.ValidationAction, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(actions) == 0 {
		errs = append(errs, field.Required(fldPath, "at least one validation action is required"))
	}
	seen := sets.New[admissionv1.ValidationAction]()
	for i, action := range actions {
		errs = append(errs, oneOf(action, fldPath.Index(i), admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
		if seen.Has(action) {
			errs = append(errs, field.Duplicate(fldPath.Index(i), action))
		}
		seen.Insert(action)
	}
	if seen.Has(admissionv1.Deny) && seen.Has(admissionv1.Warn) {
		errs = append(errs, field.Invalid(fldPath, actions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
