package admission

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/resource"
)

// An Explainer is a policy that says more of the requests it matches than its rules do.
type Explainer interface {
	// Applicabilities says whether the policy matches a request that has no object yet.
	Applicabilities(a *Attributes) []resource.Applicability
}

// Applicabilities says of each policy whether it matches a request that has no object yet: mutators first,
// each kind in the order in which they run.
func (c *Chain) Applicabilities(a *Attributes) (mutating, validating []resource.Applicability) {
	return applicabilities(c.mutators, a), applicabilities(c.validators, a)
}

// Applicabilities says the same of each policy of the selection.
func (s *Selection[P]) Applicabilities(a *Attributes) []resource.Applicability {
	if s == nil {
		return nil
	}
	return applicabilities(s.policies, a)
}

func applicabilities[P Policy](policies []P, a *Attributes) (all []resource.Applicability) {
	for _, p := range policies {
		first := len(all)
		if e, is := Policy(p).(Explainer); is {
			all = append(all, e.Applicabilities(a)...)
		} else {
			all = append(all, ApplicabilityOf(p.Name(), p.Rules(), a))
		}
		if t := termsOf(p); t != nil {
			for i := range all[first:] {
				all[first+i] = t.Applicability(a, all[first+i])
			}
		}
	}
	return all
}

// ApplicabilityOf says by its rules alone whether something matches a request that has no object yet.
func ApplicabilityOf(name string, rules []Rule, a *Attributes) resource.Applicability {
	o := resource.Applicability{Name: name, Applies: resource.Always}
	i := a.Info
	best, because := 0, "it is about other resources"
	fails := func(depth int, why string) {
		if depth > best {
			best, because = depth, why
		}
	}
	for _, r := range rules {
		switch {
		case r.Resource != anyName && r.Resource != i.Resource || r.Group != anyName && r.Group != i.Group:
		case len(r.Subresources) > 0 && !slices.Contains(r.Subresources, i.Subresource):
		case len(r.Versions) > 0 && !slices.Contains(r.Versions, i.Version):
			fails(1, "it is not about the version '"+i.Version+"'")
		case r.Operations&a.Operation == 0:
			fails(2, "it is not about the operation "+a.Operation.String())
		case len(r.Namespaces) > 0 && i.Namespace != "" && !i.IsNamespaces() &&
			!slices.Contains(r.Namespaces, i.Namespace):
			fails(3, "it is not about the namespace '"+i.Namespace+"'")
		case len(r.Labels) > 0:
			if best < 4 {
				best, o = 4, o.If("labels of the object fit")
			}
		default:
			return resource.Applicability{Name: name, Applies: resource.Always}
		}
	}
	if best == 4 {
		return o
	}
	return o.Unless(because)
}
