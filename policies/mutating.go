package policies

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// loadedMutating is a MutatingAdmissionPolicy, which is compiled together with its bindings.
type loadedMutating struct {
	from     *manifest.Object
	spec     *admissionv1.MutatingAdmissionPolicy
	bindings []*mutate.Binding
	bound    bool // also by bindings that did not compile
}

type loadedMutatingBinding struct {
	from    *manifest.Object
	policy  string // the policy's name, also where the binding did not compile
	params  *admissionv1.ParamRef
	binding *mutate.Binding
}

// mutatingPolicy takes a MutatingAdmissionPolicy. The fields of v1beta1 and v1alpha1 are those of v1.
func (l *loader) mutatingPolicy(o *manifest.Object) {
	p := &admissionv1.MutatingAdmissionPolicy{}
	if l.read(manifest.Decoder{}.Decode(o, p)) {
		l.mutating = append(l.mutating, &loadedMutating{from: o, spec: p})
	}
}

func (l *loader) mutatingBinding(o *manifest.Object) {
	b := &admissionv1.MutatingAdmissionPolicyBinding{}
	if !l.read(manifest.Decoder{}.Decode(o, b)) {
		l.unbound = true
		return
	}
	compiled, errs := mutate.CompileBinding(b)
	l.fields(o, Error, errs)
	l.mutatingBindings = append(l.mutatingBindings, loadedMutatingBinding{from: o, policy: b.Spec.PolicyName, params: b.Spec.ParamRef, binding: compiled})
}

// mutators compiles the policies that change objects.
func (l *loader) mutators() []admission.Mutator {
	byName := map[string]*loadedMutating{}
	for _, p := range l.mutating {
		byName[p.spec.Name] = p
	}
	for _, b := range l.mutatingBindings {
		p := byName[b.policy]
		if p == nil {
			if _, known := l.known[objectID{group: admissionRegistrationGroup, kind: "MutatingAdmissionPolicy", name: b.policy}]; !known && b.policy != "" {
				l.at(b.from, Error, "spec.policyName", "must be the name of a MutatingAdmissionPolicy in the policy files, not '%s'", b.policy)
			}
			continue
		}
		p.bound = true
		if b.binding != nil {
			p.bindings = append(p.bindings, b.binding)
		}
		l.paramUses = append(l.paramUses, paramUse{b.from, p.spec.Spec.ParamKind, b.params})
	}
	slices.SortFunc(l.mutating, func(a, b *loadedMutating) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	compiler, kinds := mutate.Compiler{States: l.stateNames()}, l.knownKinds()
	var mutators []admission.Mutator
	for _, p := range l.mutating {
		compiled, errs := compiler.Compile(p.spec, p.bindings...)
		l.fields(p.from, Error, errs)
		if compiled != nil {
			l.planned(p.from, compiled.Programs())
			warnings, err := typecheck.Check(mutatingExpressions(&p.spec.Spec, compiler.States), kinds)
			l.reviewed(p.from, warnings, err)
		}
		if !p.bound && !l.unbound {
			l.at(p.from, Warning, "metadata.name", "no MutatingAdmissionPolicyBinding names the policy '%s', so that it never runs", p.spec.Name)
		} else if compiled != nil {
			mutators = append(mutators, compiled)
		}
	}
	return mutators
}
