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
//   - If nothing is known of a resource its objects are merged as their values suggest, lists as a
//     whole, whereas kube-apiserver waits for a schema.
//   - A patch that cannot be applied says which operation failed.
//   - Numbers in patches are never rounded or made strings, empty lists stay
//     lists, and any part of the request and its namespace may be put into objects.
package mutate

import (
	"cmp"
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// kind is the kind of the policies. They are not about deletions: there is no
// object that could be changed.
var kind = policy.Kind{
	Name:          "MutatingAdmissionPolicy",
	Denied:        status.DeniedByMutatingPolicy,
	Misconfigured: metav1.StatusReasonForbidden,
	Operations:    admission.AllOperations &^ admission.Delete,
	ValidateMatch: validateMatch,
}

// A Policy is a compiled MutatingAdmissionPolicy with its bindings. It is
// immutable and safe for concurrent use.
type Policy struct {
	policy.Policy
	bindings  []*Binding
	reinvoked bool // may run again
	mutations []mutation
}

// mutation is one step of a policy.
type mutation struct {
	program *cel.Program
	apply   bool // its value is an apply configuration, not a JSON patch
}

// A Binding is a compiled MutatingAdmissionPolicyBinding.
type Binding = policy.Binding

// A Compiler compiles the policies of one set.
type Compiler struct {
	// States are the names of the collections in the variable state.
	States []string
	// Common is what the policies have in common; nil: each is reviewed by itself.
	Common *cel.Common
	// FindsKind says that no file provides the kind of a policy's parameters, so that it is looked for at
	// the backend.
	FindsKind bool
}

// Compile checks and compiles a policy. bindings are the bindings of this policy, as
// [CompileBinding] made them; a policy without any is checked and does nothing. Findings have paths
// such as spec.mutations[0].jsonPatch.expression; with any, the Policy is nil.
func (set Compiler) Compile(p *admissionv1.MutatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	compiled, errs := set.CompileUnbound(p)
	if compiled == nil {
		return nil, errs
	}
	return compiled.Bound(nil, bindings...), nil
}

// CompileUnbound is Compile for a policy whose bindings come later, by [Policy.Bound].
func (set Compiler) CompileUnbound(p *admissionv1.MutatingAdmissionPolicy) (*Policy, field.ErrorList) {
	errs := validatePolicy(p)
	if p.Spec.MatchConstraints == nil {
		return nil, errs
	}
	c := compiler{
		spec:   &p.Spec,
		cel:    cel.NewPatchCompiler(p.Spec.ParamKind != nil),
		policy: &Policy{reinvoked: p.Spec.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy},
	}
	spec := specOf(p)
	spec.FindsKind = set.FindsKind
	c.Compiler = policy.NewCompiler(&kind, &c.policy.Policy, spec, c.cel, set.States)
	c.Errs = errs
	c.compile()
	if len(c.Errs) > 0 {
		return nil, c.Errs
	}
	return c.policy, nil
}

// specOf is the part of a policy that all kinds of policies have.
func specOf(p *admissionv1.MutatingAdmissionPolicy) *policy.Spec {
	return &policy.Spec{
		Name: p.Name, FailurePolicy: p.Spec.FailurePolicy, ParamKind: p.Spec.ParamKind,
		MatchConstraints: p.Spec.MatchConstraints, MatchConditions: p.Spec.MatchConditions, Variables: p.Spec.Variables,
		Annotations: p.Annotations,
	}
}

// CompileBinding checks and compiles a binding.
func CompileBinding(b *admissionv1.MutatingAdmissionPolicyBinding) (*Binding, field.ErrorList) {
	spec := &policy.BindingSpec{Name: b.Name, PolicyName: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef,
		MatchResources: b.Spec.MatchResources, Annotations: b.Annotations}
	return policy.CompileBinding(spec, kind.ValidateBinding(spec))
}

// Bound returns a policy that has no bindings yet with its terms, which may be nil, and its bindings.
// It shares all that is compiled with the policy.
func (p *Policy) Bound(t admission.Terms, bindings ...*Binding) *Policy {
	bound := *p
	bound.bindings = slices.Clone(bindings)
	slices.SortStableFunc(bound.bindings, func(a, b *Binding) int { return cmp.Compare(a.Name(), b.Name()) })
	bound.Policy = p.Policy.Bound(bound.bindings...)
	bound.Policy = bound.Governed(t)
	return &bound
}

// Excludes implements admission.Narrower: a policy that is bound elsewhere costs nothing.
func (p *Policy) Excludes(i *resource.Info, o admission.Operation) bool {
	return p.ExcludesBy(i, o, p.bindings)
}

// NeverExcludes implements admission.Insistent.
func (p *Policy) NeverExcludes(i *resource.Info, o admission.Operation) bool {
	return p.NeverExcludesBy(i, o, p.bindings)
}

// CanPrefilter implements admission.Prefilter.
func (p *Policy) CanPrefilter() bool { return p.CanPrefilterBy(p.bindings...) }

// IsFilteredOut implements admission.Prefilter.
func (p *Policy) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return p.IsFilteredOutBy(ctx, a, p.bindings)
}

// Applicabilities implements admission.Explainer.
func (p *Policy) Applicabilities(a *admission.Attributes) []resource.Applicability {
	return []resource.Applicability{p.ApplicabilityBy(p.bindings, a)}
}

// Reasons implements admission.Reasoner.
func (p *Policy) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	return p.ReasonsBy(ctx, p.bindings, a)
}

// Stage implements admission.Mutator.
func (p *Policy) Stage() admission.Stage { return admission.StagePolicies }

// Applies reports whether the policy merges apply configurations, for which the types of its
// resources are needed.
func (p *Policy) Applies() bool {
	return slices.ContainsFunc(p.mutations, func(m mutation) bool { return m.apply })
}

// compiler compiles the expressions of a policy, all of them, so that every finding is reported.
type compiler struct {
	policy.Compiler
	spec   *admissionv1.MutatingAdmissionPolicySpec
	cel    *cel.PatchCompiler
	policy *Policy
}

func (c *compiler) compile() {
	c.Constraints()
	c.Conditions()
	c.Variables()
	mutations := field.NewPath("spec", "mutations")
	for i := range c.spec.Mutations {
		c.compileMutation(&c.spec.Mutations[i], mutations.Index(i))
	}
}

func (c *compiler) compileMutation(m *admissionv1.Mutation, fldPath *field.Path) {
	compiled := mutation{apply: m.PatchType == admissionv1.PatchTypeApplyConfiguration}
	switch {
	case compiled.apply && m.ApplyConfiguration != nil:
		compiled.program = c.Program(c.cel.ApplyConfiguration, m.ApplyConfiguration.Expression,
			fldPath.Child("applyConfiguration", "expression"))
	case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
		compiled.program = c.Program(c.cel.JSONPatch, m.JSONPatch.Expression, fldPath.Child("jsonPatch", "expression"))
	}
	c.policy.mutations = append(c.policy.mutations, compiled)
}
