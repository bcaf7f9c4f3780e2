package policy

import (
	"context"

	"github.com/admission-gateway/gateway/admission"
)

// Reasons implements admission.Reasoner for policies that have no bindings of their own.
func (p *Policy) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	if p.kind.Operations&a.Operation == 0 {
		return []admission.Reason{{Because: "policies of its kind are not about the operation " + a.Operation.String()}}
	}
	if field, because := p.match.Why(ctx, a); because != "" {
		return []admission.Reason{{Field: below("spec.matchConstraints", field), Because: because}}
	}
	return nil
}

// ReasonsBy says why the policy is not about a request by any of its bindings.
func (p *Policy) ReasonsBy(ctx context.Context, bindings []*Binding, a *admission.Attributes) []admission.Reason {
	if found := p.Reasons(ctx, a); found != nil {
		return found
	}
	if p.findsKind && !p.servesKind(ctx, a) {
		return nil
	}
	if len(bindings) == 0 {
		return []admission.Reason{{Because: "no binding names it"}}
	}
	var found []admission.Reason
	for _, b := range bindings {
		field, because := b.match.Why(ctx, a)
		if because == "" {
			return nil
		}
		found = append(found, admission.Reason{Binding: b.name, Field: below("spec.matchResources", field),
			Because: because})
	}
	return found
}

func below(field, member string) string {
	if member == "" {
		return ""
	}
	return field + "." + member
}
