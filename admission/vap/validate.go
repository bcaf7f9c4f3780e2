package vap

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/match"
)

const (
	maxAuditAnnotations = 20
	maxAnnotationBytes  = 5 << 10 // of a valueExpression
)

func validatePolicy(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, fldPath := &p.Spec, field.NewPath("spec")
	errs := kind.Validate(specOf(p))
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(fldPath.Child("validations"), why),
			field.Required(fldPath.Child("auditAnnotations"), why))
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
		errs = append(errs, field.Invalid(fldPath.Child("messageExpression"), v.MessageExpression,
			"must be non-empty if specified"))
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(fldPath.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(message, "\r\n"):
		errs = append(errs, field.Invalid(fldPath.Child("message"), v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		errs = append(errs, match.OneOf(*v.Reason, fldPath.Child("reason"),
			metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
	}
	return errs
}

func validateAnnotations(policy string, annotations []admissionv1.AuditAnnotation,
	fldPath *field.Path) field.ErrorList {
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

func validateActions(actions []admissionv1.ValidationAction, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(actions) == 0 {
		errs = append(errs, field.Required(fldPath, "at least one validation action is required"))
	}
	seen := sets.New[admissionv1.ValidationAction]()
	for i, action := range actions {
		errs = append(errs, match.OneOf(action, fldPath.Index(i), admissionv1.Audit, admissionv1.Deny,
			admissionv1.Warn)...)
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
