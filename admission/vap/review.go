package vap

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/reword"
)

// Review returns which expressions of a policy that compiles do not fit the
// schemas of the resources that the policy matches. The policy works all the
// same.
func (set Compiler) Review(p *admissionv1.ValidatingAdmissionPolicy,
	kinds typecheck.Kinds) ([]typecheck.Warning, error) {
	review, spec := specOf(p).Review(set.States), field.NewPath("spec")
	add := func(path *field.Path, text string) {
		review.Expressions = append(review.Expressions, typecheck.Expression{Field: path, Text: text})
	}
	for i, v := range p.Spec.Validations {
		path := spec.Child("validations").Index(i)
		add(path.Child("expression"), v.Expression)
		add(path.Child("messageExpression"), v.MessageExpression)
	}
	for i, a := range p.Spec.AuditAnnotations {
		add(spec.Child("auditAnnotations").Index(i).Child("valueExpression"), a.ValueExpression)
	}
	review.Common = set.Common
	return typecheck.Check(review, kinds)
}

// Wording returns which messages of a policy are not worded as the API
// conventions ask (VAL-4). Of a message expression its literals are looked at.
func Wording(p *admissionv1.ValidatingAdmissionPolicy) (warnings []typecheck.Warning) {
	advise := func(path *field.Path, message string) {
		if advice := reword.Advice(message); advice != "" {
			warnings = append(warnings, typecheck.Warning{Field: path.String(), Text: advice})
		}
	}
	for i, v := range p.Spec.Validations {
		path := field.NewPath("spec", "validations").Index(i)
		if message := strings.TrimSpace(v.Message); message != "" {
			advise(path.Child("message"), message)
		}
		if strings.TrimSpace(v.MessageExpression) != "" {
			for _, part := range cel.Literals(v.MessageExpression) {
				advise(path.Child("messageExpression"), part)
			}
		}
	}
	return warnings
}
