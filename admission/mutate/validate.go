package mutate

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/match"
)

func validatePolicy(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	spec, fldPath := &p.Spec, field.NewPath("spec")
	errs := kind.Validate(specOf(p))
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(fldPath.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, validateMutation(&spec.Mutations[i], fldPath.Child("mutations").Index(i))...)
	}
	reinvocation := fldPath.Child("reinvocationPolicy")
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(reinvocation, ""))
	}
	return append(errs, match.OneOf(spec.ReinvocationPolicy, reinvocation,
		admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
}

// validateMatch refuses deletions too: there is no object to change.
func validateMatch(m *admissionv1.MatchResources, fldPath *field.Path) field.ErrorList {
	errs := match.Validate(m, fldPath)
	for _, r := range m.ResourceRules {
		if slices.Contains(r.Operations, admissionv1.Delete) {
			errs = append(errs, field.NotSupported(fldPath.Child("resourceRules", "operations"), admissionv1.Delete,
				[]admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create,
					admissionv1.Update}))
		}
	}
	return errs
}

// validateMutation checks a mutation against its patchType, which names the field of the
// expression.
func validateMutation(m *admissionv1.Mutation, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	apply, patch := fldPath.Child("applyConfiguration"), fldPath.Child("jsonPatch")
	const onlyFor = "must not be specified when patchType is "
	switch m.PatchType {
	case "":
		return field.ErrorList{field.Required(fldPath.Child("patchType"), "")}
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = append(errs, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else if strings.TrimSpace(m.ApplyConfiguration.Expression) == "" {
			errs = append(errs, field.Required(apply.Child("expression"), "expression is not specified"))
		}
		if m.JSONPatch != nil {
			errs = append(errs, field.Invalid(patch, "{jsonPatch}", onlyFor+"ApplyConfiguration"))
		}
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = append(errs, field.Required(patch, "must be specified when patchType is JSONPatch"))
		} else if strings.TrimSpace(m.JSONPatch.Expression) == "" {
			errs = append(errs, field.Required(patch.Child("expression"), "expression is not specified"))
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, field.Invalid(apply, "{applyConfiguration}", onlyFor+"JSONPatch"))
		}
	default:
		errs = append(errs, match.OneOf(m.PatchType, fldPath.Child("patchType"),
			admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)...)
	}
	return errs
}
