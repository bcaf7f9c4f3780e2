package vap

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/params"
)

// What kube-apiserver's own validation of policies refuses is refused here, with its words. That validation is in
// k8s.io/kubernetes, which cannot be imported.

const (
	maxAuditAnnotations = 20
	maxAnnotationBytes  = 5 << 10 // of a valueExpression
)

func validatePolicy(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, fldPath := &p.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.FailurePolicy != nil {
		errs = append(errs, match.OneOf(*spec.FailurePolicy, fldPath.Child("failurePolicy"), admissionv1.Fail, admissionv1.Ignore)...)
	}
	if spec.ParamKind != nil {
		errs = append(errs, params.ValidateKind(spec.ParamKind, fldPath.Child("paramKind"))...)
	}
	if spec.MatchConstraints == nil {
		errs = append(errs, field.Required(fldPath.Child("matchConstraints"), ""))
	} else {
		errs = append(errs, match.Validate(spec.MatchConstraints, fldPath.Child("matchConstraints"))...)
		if len(spec.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(fldPath.Child("matchConstraints", "resourceRules"), ""))
		}
	}
	errs = append(errs, match.ValidateConditions(spec.MatchConditions, fldPath.Child("matchConditions"))...)
	errs = append(errs, match.ValidateVariables(spec.Variables, fldPath.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(fldPath.Child("validations"), why), field.Required(fldPath.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], fldPath.Child("validations").Index(i))...)
	}
	return append(errs, validateAnnotations(p.Name, spec.AuditAnnotations, fldPath.Child("auditAnnotations"))...)
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
		errs = append(errs, match.OneOf(*v.Reason, fldPath.Child("reason"),
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
	if spec.MatchResources != nil {
		errs = append(errs, match.Validate(spec.MatchResources, fldPath.Child("matchResources"))...)
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
		errs = append(errs, match.OneOf(action, fldPath.Index(i), admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
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
