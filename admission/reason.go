package admission

import "context"

// A Reason says why a policy, or a binding of it, is not about a request.
type Reason struct {
	// Binding is the name of the binding; empty if it is the policy.
	Binding string
	// Field is the field that decides, such as spec.matchConstraints.objectSelector; empty if none
	// does.
	Field, Because string
}

// A Reasoner is a policy that says why it is not about a request.
type Reasoner interface {
	// Reasons returns nothing if the policy matches the request.
	Reasons(ctx context.Context, a *Attributes) []Reason
}

// ReasonsOf returns why a policy does not match a request; nothing if it does, or if only the
// policy itself can decide.
func ReasonsOf(ctx context.Context, p Policy, a *Attributes) []Reason {
	if r, is := p.(Reasoner); is {
		return r.Reasons(ctx, a)
	}
	if o := ApplicabilityOf(p.Name(), p.Rules(), a); o.Because != "" {
		return []Reason{{Because: o.Because}}
	}
	return nil
}
