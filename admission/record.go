package admission

import (
	"context"

	"github.com/admission-gateway/gateway/internal/cel"
)

// A Recorder is told of all that policies do for one request. It is there while somebody asks for an
// explanation, and nil otherwise.
type Recorder interface {
	cel.Tracer
	// Begin is called before a policy runs, with the report as it is then.
	Begin(ctx context.Context, p Policy, a *Attributes, r *Report)
	// End is called when it has run.
	End(a *Attributes, r *Report, binding string, v Verdict)
	// Held is called for a rule in Rego that had a value.
	Held(name, file string, line int)
}

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
	// Reasons returns nothing if the policy is about the request.
	Reasons(ctx context.Context, a *Attributes) []Reason
}

// ReasonsOf returns why a policy is not about a request; nothing if it is, or if only the policy
// itself can tell.
func ReasonsOf(ctx context.Context, p Policy, a *Attributes) []Reason {
	if r, is := p.(Reasoner); is {
		return r.Reasons(ctx, a)
	}
	if o := OutlookOf(p.Name(), p.Rules(), a); o.Because != "" {
		return []Reason{{Because: o.Because}}
	}
	return nil
}

// Each goes through the policies of the chain, mutators first, each kind in the order in which they
// run.
func (c *Chain) Each(f func(p Policy, mutates bool)) {
	for _, p := range c.mutators {
		f(p, true)
	}
	for _, p := range c.validators {
		f(p, false)
	}
}
