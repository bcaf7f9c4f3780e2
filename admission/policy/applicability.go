package policy

import (
	"slices"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Applicabilities implements admission.Explainer for policies that have no bindings of their own.
func (p *Policy) Applicabilities(a *admission.Attributes) []resource.Applicability {
	return []resource.Applicability{p.applicability(a)}
}

func (p *Policy) applicability(a *admission.Attributes) resource.Applicability {
	o := resource.Applicability{Kind: p.kind.Name, Name: p.name, Applies: resource.Always}
	if p.kind.Operations&a.Operation == 0 {
		return o.Unless("policies of its kind are not about the operation " + a.Operation.String())
	}
	return match.ConditionsApplicability(len(p.conditions), p.match.Applicability(a, o))
}

// ApplicabilityBy says whether the policy matches a request by one of its bindings.
func (p *Policy) ApplicabilityBy(bindings []*Binding, a *admission.Attributes) resource.Applicability {
	o := p.applicability(a)
	if o.Applies == resource.Never {
		return o
	}
	for _, b := range bindings {
		one := b.match.Applicability(a, resource.Applicability{Name: b.name, Applies: resource.Always})
		if b.terms != nil {
			one = b.terms.Applicability(a, one)
		}
		o.Bindings = append(o.Bindings, one)
	}
	about := func(as resource.Applies) bool {
		return slices.ContainsFunc(o.Bindings, func(b resource.Applicability) bool { return b.Applies == as })
	}
	switch {
	case about(resource.Always):
	case about(resource.Sometimes):
		o = o.If("one of its bindings is about the object")
	case p.findsKind:
		o = o.If("the kind of its parameters is not there")
	default:
		found := o.Bindings
		o = o.Unless("none of its bindings is about the request")
		o.Bindings = found
	}
	return o
}
