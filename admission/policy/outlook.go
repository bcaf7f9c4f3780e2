package policy

import (
	"slices"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Outlooks implements admission.Explainer for policies that have no bindings of their own.
func (p *Policy) Outlooks(a *admission.Attributes) []resource.Outlook {
	return []resource.Outlook{p.outlook(a)}
}

func (p *Policy) outlook(a *admission.Attributes) resource.Outlook {
	o := resource.Outlook{Kind: p.kind.Name, Name: p.name, Applies: resource.Always}
	if p.kind.Operations&a.Operation == 0 {
		return o.Unless("policies of its kind are not about the operation " + a.Operation.String())
	}
	return match.ConditionsOutlook(len(p.conditions), p.match.Outlook(a, o))
}

// OutlookBy says whether the policy matches a request by one of its bindings.
func (p *Policy) OutlookBy(bindings []*Binding, a *admission.Attributes) resource.Outlook {
	o := p.outlook(a)
	if o.Applies == resource.Never {
		return o
	}
	for _, b := range bindings {
		one := b.match.Outlook(a, resource.Outlook{Name: b.name, Applies: resource.Always})
		if b.terms != nil {
			one = b.terms.Outlook(a, one)
		}
		o.Bindings = append(o.Bindings, one)
	}
	about := func(as resource.Applies) bool {
		return slices.ContainsFunc(o.Bindings, func(b resource.Outlook) bool { return b.Applies == as })
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
