package vap

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/status"
)

// Review says what the author of a policy that compiles should know of it:
// messages that are not worded as the API conventions ask (VAL-4), and
// expressions that do not fit the schemas of the resources that the policy
// matches. The policy works all the same.
func (c *Compiler) Review(p *admissionv1.ValidatingAdmissionPolicy, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
	warnings := wording(p.Spec.Validations)
	found, err := typecheck.Check(&typecheck.Policy{
		Match:       p.Spec.MatchConstraints,
		ParamKind:   p.Spec.ParamKind,
		Variables:   p.Spec.Variables,
		States:      c.States,
		Expressions: expressions(&p.Spec),
	}, kinds)
	return append(warnings, found...), err
}

// wording holds the messages to the API conventions. Of a message expression its literals are.
func wording(validations []admissionv1.Validation) []typecheck.Warning {
	var warnings []typecheck.Warning
	advise := func(path *field.Path, message string, names func() (literals, fields []string)) {
		if advice := status.Advice(message, names); advice != "" {
			warnings = append(warnings, typecheck.Warning{Field: path.String(), Text: advice})
		}
	}
	for i, v := range validations {
		path := field.NewPath("spec", "validations").Index(i)
		if message := strings.TrimSpace(v.Message); message != "" {
			advise(path.Child("message"), message, func() (literals, fields []string) { return cel.Names(v.Expression) })
		}
		if strings.TrimSpace(v.MessageExpression) != "" {
			parts, _ := cel.Names(v.MessageExpression)
			for _, part := range parts {
				advise(path.Child("messageExpression"), part, nil)
			}
		}
	}
	return warnings
}

// expressions are those of a policy besides its variables.
func expressions(spec *admissionv1.ValidatingAdmissionPolicySpec) []typecheck.Expression {
	var all []typecheck.Expression
	add := func(path *field.Path, text string) {
		if strings.TrimSpace(text) != "" {
			all = append(all, typecheck.Expression{Field: path, Text: text})
		}
	}
	root := field.NewPath("spec")
	for i, c := range spec.MatchConditions {
		add(root.Child("matchConditions").Index(i).Child("expression"), c.Expression)
	}
	for i, v := range spec.Validations {
		path := root.Child("validations").Index(i)
		add(path.Child("expression"), v.Expression)
		add(path.Child("messageExpression"), v.MessageExpression)
	}
	for i, a := range spec.AuditAnnotations {
		add(root.Child("auditAnnotations").Index(i).Child("valueExpression"), a.ValueExpression)
	}
	return all
}
