package policies

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// validatingPolicies are the ValidatingAdmissionPolicies and their bindings.
type validatingPolicies struct {
	bound bound[*vap.Policy, *vap.Binding]
}

// policy takes a ValidatingAdmissionPolicy. v1beta1 has the same fields as v1.
func (v *validatingPolicies) policy(l *loader, o *manifest.Object, p *admissionv1.ValidatingAdmissionPolicy) {
	l.useAnnotation(o, p.Annotations)
	v.bound.policies = append(v.bound.policies, boundPolicy[*vap.Policy, *vap.Binding]{
		from: o, match: p.Spec.MatchConstraints, params: p.Spec.ParamKind,
		compile: func(states []string, common *cel.Common) (*vap.Policy, field.ErrorList) {
			return vap.Compiler{States: states, Common: common,
				FindsKind: l.findsKind(p.Spec.ParamKind)}.CompileUnbound(p)
		},
		review: func(states []string, kinds typecheck.Kinds, common *cel.Common) ([]typecheck.Warning, error) {
			return vap.Compiler{States: states, Common: common}.Review(p, kinds)
		},
		wording: func() []typecheck.Warning { return vap.Wording(p) },
	})
}

func (v *validatingPolicies) binding(l *loader, o *manifest.Object, b *admissionv1.ValidatingAdmissionPolicyBinding) {
	l.useAnnotation(o, b.Annotations)
	compiled, errs := vap.CompileBinding(b)
	v.bound.bind(l, o, b.Spec.PolicyName, b.Spec.ParamRef, compiled, errs)
}

// compile implements compiler.
func (v *validatingPolicies) compile(l *loader) {
	for _, p := range v.bound.compile(l, "ValidatingAdmissionPolicy") {
		l.validators = append(l.validators, p)
	}
}

// mutatingPolicies are the MutatingAdmissionPolicies and their bindings.
type mutatingPolicies struct {
	bound bound[*mutate.Policy, *mutate.Binding]
	specs map[*manifest.Object]*admissionv1.MutatingAdmissionPolicy
}

// policy takes a MutatingAdmissionPolicy. v1beta1 and v1alpha1 have the same fields and defaults as v1.
func (m *mutatingPolicies) policy(l *loader, o *manifest.Object, p *admissionv1.MutatingAdmissionPolicy) {
	l.useAnnotation(o, p.Annotations)
	if m.specs == nil {
		m.specs = map[*manifest.Object]*admissionv1.MutatingAdmissionPolicy{}
	}
	m.specs[o] = p
	m.bound.policies = append(m.bound.policies, boundPolicy[*mutate.Policy, *mutate.Binding]{
		from: o, match: p.Spec.MatchConstraints, params: p.Spec.ParamKind,
		compile: func(states []string, common *cel.Common) (*mutate.Policy, field.ErrorList) {
			return mutate.Compiler{States: states, Common: common,
				FindsKind: l.findsKind(p.Spec.ParamKind)}.CompileUnbound(p)
		},
		review: func(states []string, kinds typecheck.Kinds, common *cel.Common) ([]typecheck.Warning, error) {
			return mutate.Compiler{States: states, Common: common}.Review(p, kinds)
		},
	})
}

// binding takes a MutatingAdmissionPolicyBinding. Of its versions v1alpha1 alone has a default for what happens without
// parameters.
func (m *mutatingPolicies) binding(l *loader, o *manifest.Object, b *admissionv1.MutatingAdmissionPolicyBinding) {
	l.useAnnotation(o, b.Annotations)
	if _, version := o.GroupVersion(); version == "v1alpha1" && b.Spec.ParamRef != nil &&
		b.Spec.ParamRef.ParameterNotFoundAction == nil {
		b.Spec.ParamRef.ParameterNotFoundAction = new(admissionv1.DenyAction)
	}
	compiled, errs := mutate.CompileBinding(b)
	m.bound.bind(l, o, b.Spec.PolicyName, b.Spec.ParamRef, compiled, errs)
}

// compile implements compiler.
func (m *mutatingPolicies) compile(l *loader) {
	for _, p := range m.bound.compile(l, "MutatingAdmissionPolicy") {
		l.mutators = append(l.mutators, p)
	}
	kinds := l.knownKinds()
	for o, p := range m.specs {
		patched(&l.findings, o, p, kinds)
	}
}
