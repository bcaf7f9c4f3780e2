package mutate

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/typecheck"
)

// Review returns which expressions of a policy that compiles do not fit the
// schemas of the resources that the policy matches. The policy works all the
// same.
func (set Compiler) Review(p *admissionv1.MutatingAdmissionPolicy, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
	review := specOf(p).Review(set.States)
	review.Mutating = true
	for i, m := range p.Spec.Mutations {
		path := field.NewPath("spec", "mutations").Index(i)
		if m.ApplyConfiguration != nil {
			review.Expressions = append(review.Expressions,
				typecheck.Expression{Field: path.Child("applyConfiguration", "expression"),
					Text: m.ApplyConfiguration.Expression})
		}
		if m.JSONPatch != nil {
			review.Expressions = append(review.Expressions,
				typecheck.Expression{Field: path.Child("jsonPatch", "expression"), Text: m.JSONPatch.Expression})
		}
	}
	review.Common = set.Common
	return typecheck.Check(review, kinds)
}

// ReviewDefaulting is Review for a DefaultingPolicy.
func (set Compiler) ReviewDefaulting(p *DefaultingPolicy, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
	review := p.spec().Review(set.States)
	review.Defaulting = true
	for i, d := range p.Spec.Defaults {
		path := field.NewPath("spec", "defaults").Index(i)
		review.Expressions = append(review.Expressions,
			typecheck.Expression{Field: path.Child("valueExpression"), Text: d.ValueExpression},
			typecheck.Expression{Field: path.Child("when"), Text: d.When})
	}
	review.Common = set.Common
	return typecheck.Check(review, kinds)
}
