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
//     name is a failure of the policy, and so is whatever else the request's
//     [admission.Lookup] cannot tell.
//   - There is one variable more, state, with the collections of the policy set.
package vap

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/cel"
)

// A Policy is a compiled ValidatingAdmissionPolicy with its bindings. It is
// immutable and safe for concurrent use.
type Policy struct {
	name     string
	match    *match.Matcher
	params   schema.GroupVersionKind // of the parameters; empty: there are none
	failure  admission.FailurePolicy
	bindings []*Binding
	rules    []admission.Rule
	needsOld bool
	// needsNamespace: an expression reads namespaceObject.
	needsNamespace bool

	conditions  match.Conditions
	variables   *cel.Variables
	validations []validation
	annotations []annotation
}

// validation is one rule of a policy.
type validation struct {
	program *cel.Program
	message string // the author's; "" where there is none
	compute *cel.Message
	reason  metav1.StatusReason
	field   string // that it is about; "" when it does not tell
}

// annotation is an audit annotation of a policy.
type annotation struct {
	key     string
	program *cel.Program
}

// A Binding is a compiled ValidatingAdmissionPolicyBinding.
type Binding struct {
	name    string
	policy  string
	match   *match.Matcher // nil: whatever the policy matches
	params  *params.Ref
	actions []admissionv1.ValidationAction
	texts   []string // the actions, for the audit event
}

// PolicyName is the name of the policy that the binding is for.
func (b *Binding) PolicyName() string { return b.policy }

// Compile is that of a [Compiler] without states.
func Compile(p *admissionv1.ValidatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	return Compiler{}.Compile(p, bindings...)
}

// A Compiler compiles the policies of one set.
type Compiler struct {
	// States are the names of the collections in the variable state.
	States []string
}

// Compile checks and compiles a policy. bindings are those of this policy, as
// [CompileBinding] made them, and act in the order given; a policy without any
// is checked and does nothing.
// Findings have paths such as spec.validations[0].expression; with any, the
// Policy is nil.
func (set Compiler) Compile(p *admissionv1.ValidatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	errs := validatePolicy(p)
	if p.Spec.MatchConstraints == nil {
		return nil, errs
	}
	c := compiler{
		spec:   &p.Spec,
		cel:    cel.NewAdmissionCompiler(p.Spec.ParamKind != nil),
		policy: &Policy{name: p.Name, failure: failurePolicy(p.Spec.FailurePolicy), bindings: slices.Clone(bindings)},
		errs:   errs,
	}
	c.policy.params, _ = params.Kind(p.Spec.ParamKind)
	c.cel.DeclareState(set.States)
	c.compile()
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return c.policy, nil
}

// CompileBinding checks and compiles a binding.
func CompileBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) (*Binding, field.ErrorList) {
	errs := validateBinding(b)
	spec := field.NewPath("spec")
	matcher, matchErrs := match.New(b.Spec.MatchResources, spec.Child("matchResources"))
	ref, refErrs := params.Compile(b.Spec.ParamRef, spec.Child("paramRef"))
	if errs = append(append(errs, matchErrs...), refErrs...); len(errs) > 0 {
		return nil, errs
	}
	compiled := &Binding{name: b.Name, policy: b.Spec.PolicyName, match: matcher, params: ref, actions: b.Spec.ValidationActions}
	for _, action := range b.Spec.ValidationActions {
		compiled.texts = append(compiled.texts, string(action))
	}
	return compiled, nil
}

func failurePolicy(p *admissionv1.FailurePolicyType) admission.FailurePolicy {
	if p != nil && *p == admissionv1.Ignore {
		return admission.Ignore
	}
	return admission.Fail
}

// Name implements admission.Policy.
func (p *Policy) Name() string { return p.name }

// Rules implements admission.Policy.
func (p *Policy) Rules() []admission.Rule { return p.rules }

// FailurePolicy implements admission.Policy.
func (p *Policy) FailurePolicy() admission.FailurePolicy { return p.failure }

// NeedsOld implements admission.Policy.
func (p *Policy) NeedsOld() bool { return p.needsOld }

// compiler compiles the expressions of a policy, all of them, so that every finding is reported.
type compiler struct {
	spec   *admissionv1.ValidatingAdmissionPolicySpec
	cel    *cel.AdmissionCompiler
	policy *Policy
	errs   field.ErrorList
}

func (c *compiler) compile() {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	c.policy.match, errs = match.New(c.spec.MatchConstraints, spec.Child("matchConstraints"))
	c.errs = append(c.errs, errs...)
	if len(c.policy.bindings) > 0 { // they can only narrow what the policy matches
		c.policy.rules = match.IndexRules(c.spec.MatchConstraints)
	}
	c.compileConditions(spec.Child("matchConditions"))
	c.compileVariables(spec.Child("variables"))
	for i := range c.spec.Validations {
		c.compileValidation(&c.spec.Validations[i], spec.Child("validations").Index(i))
	}
	c.compileAnnotations(spec.Child("auditAnnotations"))
	c.policy.needsOld = c.policy.needsOld || c.policy.match.SelectsObjects() ||
		slices.ContainsFunc(c.policy.bindings, func(b *Binding) bool { return b.match.SelectsObjects() })
}

// use notes what a compiled expression needs.
func (c *compiler) use(p interface{ Uses(cel.Slot) bool }) {
	c.policy.needsOld = c.policy.needsOld || p.Uses(cel.OldObject)
	c.policy.needsNamespace = c.policy.needsNamespace || p.Uses(cel.NamespaceObject)
}

// program compiles an expression that is there.
func (c *compiler) program(compile func(string) (*cel.Program, error), expression string, fldPath *field.Path) *cel.Program {
	if strings.TrimSpace(expression) == "" {
		return nil // validatePolicy has reported it
	}
	p, err := compile(expression)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(fldPath, expression, err.Error()))
		return nil
	}
	c.use(p)
	return p
}

// compileConditions compiles the match conditions, to which namespaceObject is null.
func (c *compiler) compileConditions(fldPath *field.Path) {
	needed := c.policy.needsNamespace
	defer func() { c.policy.needsNamespace = needed }()
	for i, condition := range c.spec.MatchConditions {
		p := c.program(c.cel.MatchCondition, condition.Expression, fldPath.Index(i).Child("expression"))
		c.policy.conditions = append(c.policy.conditions, p)
	}
}

func (c *compiler) compileVariables(fldPath *field.Path) {
	for i, variable := range c.spec.Variables {
		if strings.TrimSpace(variable.Expression) == "" {
			continue
		}
		path := fldPath.Index(i).Child("expression")
		if err := c.cel.Variable(variable.Name, variable.Expression); err != nil {
			c.errs = append(c.errs, field.Invalid(path, variable.Expression, err.Error()))
			continue
		}
		programs := c.cel.Variables().Programs()
		c.use(programs[len(programs)-1])
	}
	c.policy.variables = c.cel.Variables()
}

func (c *compiler) compileValidation(v *admissionv1.Validation, fldPath *field.Path) {
	compiled := validation{message: strings.TrimSpace(v.Message), reason: metav1.StatusReasonInvalid}
	compiled.program = c.program(c.cel.Condition, v.Expression, fldPath.Child("expression"))
	if compiled.program != nil {
		compiled.field = compiled.program.Field()
	}
	if strings.TrimSpace(v.MessageExpression) != "" {
		m, err := c.cel.Message(v.MessageExpression)
		if err != nil {
			c.errs = append(c.errs, field.Invalid(fldPath.Child("messageExpression"), v.MessageExpression, err.Error()))
		} else {
			compiled.compute = m
			c.use(m)
		}
	}
	if v.Reason != nil {
		compiled.reason = *v.Reason
	}
	c.policy.validations = append(c.policy.validations, compiled)
}

func (c *compiler) compileAnnotations(fldPath *field.Path) {
	for i, a := range c.spec.AuditAnnotations {
		p := c.program(c.cel.Annotation, a.ValueExpression, fldPath.Index(i).Child("valueExpression"))
		c.policy.annotations = append(c.policy.annotations, annotation{a.Key, p})
	}
}
