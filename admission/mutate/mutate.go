// Package mutate runs the policies that change objects: Kubernetes'
// MutatingAdmissionPolicies and the gateway's DefaultingPolicies.
//
// A MutatingAdmissionPolicy and its bindings are checked and compiled as
// kube-apiserver does when they are created, and run as its plugin does: match
// conditions and lazy variables, mutations one after the other, each with a
// budget of its own, apply configurations merged by the types of the resource,
// JSON patches as Kubernetes' library applies them, defaults after each.
//
// # Where we differ from kube-apiserver
//
//   - Policies run in the order of their names, there in no order.
//   - A resource of which nothing is known has its objects merged as their values
//     suggest, lists as a whole, where kube-apiserver waits for a schema.
//   - A patch that cannot be applied says which operation failed.
//   - Numbers in patches are never rounded or made strings, empty lists stay
//     lists, and any part of the request and its namespace may be put into objects.
package mutate

import (
	"cmp"
	"fmt"
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

// A Policy is a compiled MutatingAdmissionPolicy with its bindings. It is
// immutable and safe for concurrent use.
type Policy struct {
	name       string
	match      *match.Matcher
	params     schema.GroupVersionKind // of the parameters; empty: there are none
	failure    admission.FailurePolicy
	bindings   []*Binding
	rules      []admission.Rule
	reinvoked  bool // may run again
	needs      needs
	conditions match.Conditions
	variables  *cel.Variables
	mutations  []mutation
}

// needs are what the expressions of a policy read beside the object.
type needs struct{ old, namespace bool }

func (n *needs) use(p *cel.Program) {
	n.old = n.old || p.Uses(cel.OldObject)
	n.namespace = n.namespace || p.Uses(cel.NamespaceObject)
}

// mutation is one step of a policy.
type mutation struct {
	program *cel.Program
	apply   bool // its value is an apply configuration, not a JSON patch
}

// A Binding is a compiled MutatingAdmissionPolicyBinding.
type Binding struct {
	name   string
	policy string
	match  *match.Matcher // nil: whatever the policy matches
	params *params.Ref
}

// PolicyName is the name of the policy that the binding is for.
func (b *Binding) PolicyName() string { return b.policy }

// A Compiler compiles the policies of one set.
type Compiler struct {
	// States are the names of the collections in the variable state.
	States []string
}

// Compile checks and compiles a policy. bindings are those of this policy, as
// [CompileBinding] made them; a policy without any is checked and does nothing.
// Findings have paths such as spec.mutations[0].jsonPatch.expression; with any,
// the Policy is nil.
func (set Compiler) Compile(p *admissionv1.MutatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	errs := validatePolicy(p)
	if p.Spec.MatchConstraints == nil {
		return nil, errs
	}
	c := compiler{
		spec: &p.Spec,
		cel:  cel.NewPatchCompiler(p.Spec.ParamKind != nil),
		errs: errs,
		policy: &Policy{
			name:      p.Name,
			failure:   failurePolicy(p.Spec.FailurePolicy),
			bindings:  slices.Clone(bindings),
			reinvoked: p.Spec.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy,
		},
	}
	slices.SortStableFunc(c.policy.bindings, func(a, b *Binding) int { return cmp.Compare(a.name, b.name) })
	c.policy.params, _ = params.Kind(p.Spec.ParamKind)
	c.cel.DeclareState(set.States)
	c.compile()
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return c.policy, nil
}

// CompileBinding checks and compiles a binding.
func CompileBinding(b *admissionv1.MutatingAdmissionPolicyBinding) (*Binding, field.ErrorList) {
	errs := validateBinding(b)
	spec := field.NewPath("spec")
	matcher, matchErrs := match.New(b.Spec.MatchResources, spec.Child("matchResources"))
	ref, refErrs := params.Compile(b.Spec.ParamRef, spec.Child("paramRef"))
	if errs = append(append(errs, matchErrs...), refErrs...); len(errs) > 0 {
		return nil, errs
	}
	return &Binding{name: b.Name, policy: b.Spec.PolicyName, match: matcher, params: ref}, nil
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
func (p *Policy) NeedsOld() bool { return p.needs.old }

// Stage implements admission.Mutator.
func (p *Policy) Stage() admission.Stage { return admission.StagePolicies }

// Applies tells whether the policy merges apply configurations, for which the
// types of the resources that it is about are needed.
func (p *Policy) Applies() bool {
	return slices.ContainsFunc(p.mutations, func(m mutation) bool { return m.apply })
}

// denial words a failure as Kubernetes does; b is nil where it is the policy's
// own.
func (p *Policy) denial(b *Binding, reason metav1.StatusReason, err error) admission.Denial {
	d := admission.Denial{Policy: p.name, Reason: reason, Type: causeInternal, Failed: true}
	if b == nil {
		d.Message = fmt.Sprintf("policy \"%s\" denied request: %v", p.name, err)
		return d
	}
	d.Binding = b.name
	d.Message = fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", p.name, b.name, err)
	return d
}

// causeInternal is the reason of causes that tell of a policy's own failure.
const causeInternal = metav1.CauseType(field.ErrorTypeInternal)

// compiler compiles the expressions of a policy, all of them, so that every finding is reported.
type compiler struct {
	spec   *admissionv1.MutatingAdmissionPolicySpec
	cel    *cel.PatchCompiler
	policy *Policy
	errs   field.ErrorList
}

func (c *compiler) compile() {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	c.policy.match, errs = match.New(c.spec.MatchConstraints, spec.Child("matchConstraints"))
	c.errs = append(c.errs, errs...)
	if len(c.policy.bindings) > 0 { // they can only narrow what the policy matches
		c.policy.rules = mutable(match.IndexRules(c.spec.MatchConstraints))
	}
	for i, condition := range c.spec.MatchConditions {
		path := spec.Child("matchConditions").Index(i).Child("expression")
		c.policy.conditions = append(c.policy.conditions, c.program(c.cel.MatchCondition, condition.Expression, path))
	}
	c.policy.needs.namespace = false // match conditions do not see it
	c.compileVariables(spec.Child("variables"))
	for i := range c.spec.Mutations {
		c.compileMutation(&c.spec.Mutations[i], spec.Child("mutations").Index(i))
	}
	c.policy.needs.old = c.policy.needs.old || c.policy.match.SelectsObjects() ||
		slices.ContainsFunc(c.policy.bindings, func(b *Binding) bool { return b.match.SelectsObjects() })
}

// mutable are the rules without deletions, whose objects nobody can change.
func mutable(rules []admission.Rule) []admission.Rule {
	for i := range rules {
		rules[i].Operations &^= admission.Delete
	}
	return rules
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
	c.policy.needs.use(p)
	return p
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
		c.policy.needs.use(programs[len(programs)-1])
	}
	c.policy.variables = c.cel.Variables()
}

func (c *compiler) compileMutation(m *admissionv1.Mutation, fldPath *field.Path) {
	compiled := mutation{apply: m.PatchType == admissionv1.PatchTypeApplyConfiguration}
	switch {
	case compiled.apply && m.ApplyConfiguration != nil:
		compiled.program = c.program(c.cel.ApplyConfiguration, m.ApplyConfiguration.Expression, fldPath.Child("applyConfiguration", "expression"))
	case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
		compiled.program = c.program(c.cel.JSONPatch, m.JSONPatch.Expression, fldPath.Child("jsonPatch", "expression"))
	}
	c.policy.mutations = append(c.policy.mutations, compiled)
}
