package policies

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// validatingPolicy takes a ValidatingAdmissionPolicy. v1beta1 has the same fields as v1.
func (l *loader) validatingPolicy(o *manifest.Object, p *admissionv1.ValidatingAdmissionPolicy) {
	l.validating.policies = append(l.validating.policies, boundPolicy[*vap.Policy, *vap.Binding]{
		from: o, params: p.Spec.ParamKind,
		compile: func(states []string, bindings []*vap.Binding) (*vap.Policy, field.ErrorList) {
			return vap.Compiler{States: states}.Compile(p, bindings...)
		},
		review: func(states []string, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
			return vap.Compiler{States: states}.Review(p, kinds)
		},
		wording: func() []typecheck.Warning { return vap.Wording(p) },
	})
}

func (l *loader) validatingBinding(o *manifest.Object, b *admissionv1.ValidatingAdmissionPolicyBinding) {
	compiled, errs := vap.CompileBinding(b)
	l.validating.bind(l, o, b.Spec.PolicyName, b.Spec.ParamRef, compiled, errs)
}

// mutatingPolicy takes a MutatingAdmissionPolicy. v1beta1 and v1alpha1 have the same fields as v1.
func (l *loader) mutatingPolicy(o *manifest.Object, p *admissionv1.MutatingAdmissionPolicy) {
	l.mutating.policies = append(l.mutating.policies, boundPolicy[*mutate.Policy, *mutate.Binding]{
		from: o, params: p.Spec.ParamKind,
		compile: func(states []string, bindings []*mutate.Binding) (*mutate.Policy, field.ErrorList) {
			return mutate.Compiler{States: states}.Compile(p, bindings...)
		},
		review: func(states []string, kinds typecheck.Kinds) ([]typecheck.Warning, error) {
			return mutate.Compiler{States: states}.Review(p, kinds)
		},
	})
}

func (l *loader) mutatingBinding(o *manifest.Object, b *admissionv1.MutatingAdmissionPolicyBinding) {
	compiled, errs := mutate.CompileBinding(b)
	l.mutating.bind(l, o, b.Spec.PolicyName, b.Spec.ParamRef, compiled, errs)
}
