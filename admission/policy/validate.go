package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/params"
)

// Validation here and in the packages above refuses what kube-apiserver's refuses,
// with its words. kube-apiserver's is in k8s.io/kubernetes, which cannot be
// imported.

// Validate checks the part of a definition that all kinds of policies have, but for
// the expressions.
func (k *Kind) Validate(s *Spec) field.ErrorList {
	fldPath := field.NewPath("spec")
	var errs field.ErrorList
	if s.FailurePolicy != nil {
		errs = append(errs, match.OneOf(*s.FailurePolicy, fldPath.Child("failurePolicy"), admissionv1.Fail,
			admissionv1.Ignore)...)
	}
	if s.ParamKind != nil {
		errs = append(errs, params.ValidateKind(s.ParamKind, fldPath.Child("paramKind"))...)
	}
	errs = append(errs, k.validateConstraints(s.MatchConstraints, fldPath.Child("matchConstraints"))...)
	errs = append(errs, match.ValidateConditions(s.MatchConditions, fldPath.Child("matchConditions"))...)
	return append(errs, match.ValidateVariables(s.Variables, fldPath.Child("variables"))...)
}

func (k *Kind) validateConstraints(m *admissionv1.MatchResources, fldPath *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	errs := k.ValidateMatch(m, fldPath)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(fldPath.Child("resourceRules"), ""))
	}
	return errs
}

// ValidateBinding checks the part of a definition that all kinds of bindings have.
func (k *Kind) ValidateBinding(s *BindingSpec) field.ErrorList {
	fldPath := field.NewPath("spec")
	var errs field.ErrorList
	if s.PolicyName == "" {
		errs = append(errs, field.Required(fldPath.Child("policyName"), ""))
	} else {
		for _, why := range utilvalidation.IsDNS1123Subdomain(s.PolicyName) {
			errs = append(errs, field.Invalid(fldPath.Child("policyName"), s.PolicyName, why))
		}
	}
	if s.MatchResources != nil {
		errs = append(errs, k.ValidateMatch(s.MatchResources, fldPath.Child("matchResources"))...)
	}
	return errs
}
