// Package vap runs Kubernetes' ValidatingAdmissionPolicies.
//
// A policy and its bindings are checked and compiled as kube-apiserver does
// when they are created, and evaluated as its plugin does: match conditions,
// lazy variables, validations with messages and reasons, audit annotations, and
// the actions of the bindings, with Kubernetes' budgets. Where kube-apiserver
// answers with the first failed validation of the first policy, all are
// reported.
//
// # Where we differ from kube-apiserver
//
//   - A messageExpression is evaluated only when its validation failed, and one
//     that uses up the budget makes way for the static message.
//   - An object that cannot be converted to the version that a policy's rules
//     name is a failure of the policy, and so is everything else that the
//     request's [admission.Lookup] does not know.
//   - There is one variable more, state, with the collections of the policy set.
package vap

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/explain"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// kind is the kind of the policies.
var kind = policy.Kind{
	Name:          "ValidatingAdmissionPolicy",
	Denied:        status.DeniedByValidatingPolicy,
	Misconfigured: metav1.StatusReasonInvalid,
	Operations:    admission.AllOperations,
	ValidateMatch: match.Validate,
}

// A Policy is a compiled ValidatingAdmissionPolicy with its bindings. It is
// immutable and safe for concurrent use.
type Policy struct {
	policy.Policy
	bindings    []*Binding
	validations []validation
	sequence    cel.Sequence // of the validations
	annotations []annotation
	composed    bool // match conditions see the variables
	plain       bool // only a validation that is not true has an effect
}

// validation is one rule of a policy.
type validation struct {
	program *cel.Program
	because *explain.Explanation // why it does not hold
	message string               // the author's; "" if there is none
	compute *cel.Message
	reason  metav1.StatusReason
	field   string // that it names; "" if it names none
}

// annotation is an audit annotation of a policy.
type annotation struct {
	key     string
	program *cel.Program
}

// A Binding is a compiled ValidatingAdmissionPolicyBinding.
type Binding struct {
	*policy.Binding
	actions []admissionv1.ValidationAction
	texts   []string // the actions, for the audit event
}

// A Compiler compiles the policies of one set.
type Compiler struct {
	// States are the names of the collections in the variable state.
	States []string
	// ComposedConditions says that match conditions see the variables, as in Gatekeeper's templates.
	ComposedConditions bool
	// Common is what the policies have in common; nil: each is compiled by itself.
	Common *cel.Common
	// FindsKind says that no file provides the kind of a policy's parameters, so that it is looked for at
	// the backend.
	FindsKind bool
}

// Compile checks and compiles a policy. bindings are the bindings of this policy, as
// [CompileBinding] made them, and act in the order given; a policy without any is checked and does
// nothing. Findings have paths such as spec.validations[0].expression; with any, the Policy is nil.
func (set Compiler) Compile(p *admissionv1.ValidatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	compiled, errs := set.CompileUnbound(p)
	if compiled == nil {
		return nil, errs
	}
	return compiled.Bound(nil, bindings...), nil
}

// CompileUnbound is Compile for a policy whose bindings come later, by [Policy.Bound].
func (set Compiler) CompileUnbound(p *admissionv1.ValidatingAdmissionPolicy) (*Policy, field.ErrorList) {
	errs := validatePolicy(p)
	if p.Spec.MatchConstraints == nil {
		return nil, errs
	}
	c := compiler{
		spec:   &p.Spec,
		cel:    explain.NewCompiler(cel.NewAdmissionCompiler(p.Spec.ParamKind != nil)),
		policy: &Policy{composed: set.ComposedConditions},
	}
	if set.ComposedConditions {
		c.cel.ComposeConditions()
	}
	spec := specOf(p)
	spec.FindsKind = set.FindsKind
	c.Compiler = policy.NewCompiler(&kind, &c.policy.Policy, spec, c.cel, set.States)
	if set.Common != nil && !declaresTwice(p.Spec.Variables) {
		c.cel.Share(set.Common)
	}
	c.Errs = errs
	c.compile()
	if len(c.Errs) > 0 {
		return nil, c.Errs
	}
	c.policy.sequence = sequenceOf(c.policy.validations)
	return c.policy, nil
}

// sequenceOf returns the expressions of validations as they are evaluated.
func sequenceOf(validations []validation) cel.Sequence {
	programs := make([]*cel.Program, len(validations))
	for i := range validations {
		programs[i] = validations[i].program
	}
	return cel.NewSequence(programs)
}

// declaresTwice reports whether two variables have the same name. The second one changes what is known of the first.
func declaresTwice(variables []admissionv1.Variable) bool {
	names := make(map[string]bool, len(variables))
	for _, v := range variables {
		names[v.Name] = true
	}
	return len(names) < len(variables)
}

// specOf is the part of a policy that all kinds of policies have.
func specOf(p *admissionv1.ValidatingAdmissionPolicy) *policy.Spec {
	return &policy.Spec{
		Name: p.Name, FailurePolicy: p.Spec.FailurePolicy, ParamKind: p.Spec.ParamKind,
		MatchConstraints: p.Spec.MatchConstraints, MatchConditions: p.Spec.MatchConditions, Variables: p.Spec.Variables,
		Annotations: p.Annotations,
	}
}

// CompileBinding checks and compiles a binding.
func CompileBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) (*Binding, field.ErrorList) {
	spec := &policy.BindingSpec{Name: b.Name, PolicyName: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef,
		MatchResources: b.Spec.MatchResources, Annotations: b.Annotations}
	errs := append(kind.ValidateBinding(spec),
		validateActions(b.Spec.ValidationActions, field.NewPath("spec", "validationActions"))...)
	base, errs := policy.CompileBinding(spec, errs)
	if base == nil {
		return nil, errs
	}
	compiled := &Binding{Binding: base, actions: b.Spec.ValidationActions}
	for _, action := range b.Spec.ValidationActions {
		compiled.texts = append(compiled.texts, string(action))
	}
	return compiled, nil
}

// Bound returns a policy that has no bindings yet with its terms, which may be nil, and its bindings.
// It shares all that is compiled with the policy.
func (p *Policy) Bound(t admission.Terms, bindings ...*Binding) *Policy {
	bound := *p
	bound.bindings = slices.Clone(bindings)
	bound.Policy = p.Policy.Bound(bound.common()...)
	bound.Policy = bound.Governed(t)
	bound.plain = bound.IsPlain() && len(bound.annotations) == 0 &&
		!slices.ContainsFunc(bindings, func(b *Binding) bool { return b.Terms() != nil })
	return &bound
}

// Excludes implements admission.Narrower: a policy that is bound elsewhere costs nothing.
func (p *Policy) Excludes(i *resource.Info, o admission.Operation) bool {
	return p.ExcludesBy(i, o, p.common())
}

// NeverExcludes implements admission.Insistent.
func (p *Policy) NeverExcludes(i *resource.Info, o admission.Operation) bool {
	return p.NeverExcludesBy(i, o, p.common())
}

// AlwaysMatches implements admission.Decided.
func (p *Policy) AlwaysMatches(i *resource.Info, o admission.Operation) bool {
	return p.AlwaysMatchesBy(i, o, p.common())
}

// CanPrefilter implements admission.Prefilter.
func (p *Policy) CanPrefilter() bool { return p.CanPrefilterBy(p.common()...) }

// IsFilteredOut implements admission.Prefilter.
func (p *Policy) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return p.IsFilteredOutBy(ctx, a, p.common())
}

// Applicabilities implements admission.Explainer.
func (p *Policy) Applicabilities(a *admission.Attributes) []resource.Applicability {
	return []resource.Applicability{p.ApplicabilityBy(p.common(), a)}
}

// Reasons implements admission.Reasoner.
func (p *Policy) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	return p.ReasonsBy(ctx, p.common(), a)
}

// common is the part of the bindings that all kinds of bindings have.
func (p *Policy) common() []*policy.Binding {
	bindings := make([]*policy.Binding, len(p.bindings))
	for i, b := range p.bindings {
		bindings[i] = b.Binding
	}
	return bindings
}

// compiler compiles the expressions of a policy, all of them, so that every finding is reported.
type compiler struct {
	policy.Compiler
	spec   *admissionv1.ValidatingAdmissionPolicySpec
	cel    *explain.Compiler
	policy *Policy
}

func (c *compiler) compile() {
	c.Constraints()
	if c.policy.composed { // conditions come after the variables that they read
		c.Variables()
		c.Conditions()
	} else {
		c.Conditions()
		c.Variables()
	}
	spec := field.NewPath("spec")
	for i := range c.spec.Validations {
		c.compileValidation(&c.spec.Validations[i], spec.Child("validations").Index(i))
	}
	for i, a := range c.spec.AuditAnnotations {
		p := c.Program(c.cel.Annotation, a.ValueExpression,
			spec.Child("auditAnnotations").Index(i).Child("valueExpression"))
		c.policy.annotations = append(c.policy.annotations, annotation{a.Key, p})
	}
}

func (c *compiler) compileValidation(v *admissionv1.Validation, fldPath *field.Path) {
	compiled := validation{message: strings.TrimSpace(v.Message), reason: metav1.StatusReasonInvalid}
	condition := func(expression string) (p *cel.Program, err error) {
		p, compiled.because, err = c.cel.Condition(expression)
		return p, err
	}
	if compiled.program = c.Program(condition, v.Expression, fldPath.Child("expression")); compiled.program != nil {
		compiled.field = compiled.because.Field()
	}
	if strings.TrimSpace(v.MessageExpression) != "" {
		c.Program(func(expression string) (*cel.Program, error) {
			m, err := c.cel.Message(expression)
			if err != nil {
				return nil, err
			}
			compiled.compute = m
			return m.Program(), nil
		}, v.MessageExpression, fldPath.Child("messageExpression"))
	}
	if v.Reason != nil {
		compiled.reason = *v.Reason
	}
	c.policy.validations = append(c.policy.validations, compiled)
}
