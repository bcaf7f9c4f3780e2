package policies

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// validatingPolicy takes a ValidatingAdmissionPolicy. The fields of v1beta1 are those of v1. It is compiled later,
// together with its bindings.
func (l *loader) validatingPolicy(o *manifest.Object) {
	p := &admissionv1.ValidatingAdmissionPolicy{}
	if l.read(manifest.Decoder{}.Decode(o, p)) {
		l.policies[o.Name] = &loadedPolicy{from: o, spec: p}
	}
}

func (l *loader) validatingBinding(o *manifest.Object) {
	b := &admissionv1.ValidatingAdmissionPolicyBinding{}
	if !l.read(manifest.Decoder{}.Decode(o, b)) {
		l.unbound = true
		return
	}
	compiled, errs := vap.CompileBinding(b)
	l.fields(o, Error, errs)
	l.bindings = append(l.bindings, loadedBinding{from: o, policy: b.Spec.PolicyName, params: b.Spec.ParamRef, binding: compiled})
}

// validators compiles the policies with their bindings.
func (l *loader) validators() []admission.Validator {
	bound := map[string][]*vap.Binding{}
	attempted := map[string]bool{}
	for _, b := range l.bindings {
		attempted[b.policy] = true
		if b.binding != nil {
			bound[b.policy] = append(bound[b.policy], b.binding)
		}
		if p := l.policies[b.policy]; p != nil {
			l.paramUses = append(l.paramUses, paramUse{b.from, p.spec.Spec.ParamKind, b.params})
		}
		if _, ok := l.known[objectID{group: admissionRegistrationGroup, kind: "ValidatingAdmissionPolicy", name: b.policy}]; !ok && b.policy != "" {
			l.at(b.from, Error, "spec.policyName", "must be the name of a ValidatingAdmissionPolicy in the policy files, not '%s'", b.policy)
		}
	}
	loaded := make([]*loadedPolicy, 0, len(l.policies))
	for _, p := range l.policies {
		loaded = append(loaded, p)
	}
	slices.SortFunc(loaded, func(a, b *loadedPolicy) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	var validators []admission.Validator
	compiler, kinds := vap.Compiler{States: l.stateNames()}, l.knownKinds()
	for _, p := range loaded {
		compiled, errs := compiler.Compile(p.spec, bound[p.spec.Name]...)
		l.fields(p.from, Error, errs)
		if compiled != nil {
			l.planned(p.from, compiled.Programs())
			warnings, err := compiler.Review(p.spec, kinds)
			l.reviewed(p.from, warnings, err)
		}
		if !attempted[p.spec.Name] && !l.unbound {
			l.at(p.from, Warning, "metadata.name", "no ValidatingAdmissionPolicyBinding names the policy '%s', so that it never runs", p.spec.Name)
		} else if compiled != nil {
			validators = append(validators, compiled)
		}
	}
	return validators
}
