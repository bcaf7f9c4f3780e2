package policy

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
)

// Governed returns the policy with terms, which shares with it all that is compiled.
func (p *Policy) Governed(t admission.Terms) Policy {
	governed := *p
	governed.terms = t
	return governed
}

// Terms are the terms of the policy; nil: it has none.
func (p *Policy) Terms() admission.Terms { return p.terms }

// IsAbout reports whether the policy judges the request, or whether it does cannot be determined.
// Match conditions do not count.
func (p *Policy) IsAbout(ctx context.Context, a *admission.Attributes) bool {
	_, matches, err := p.match.Matches(ctx, a)
	return matches || err != nil
}

// IsAboutBy reports the same of a policy that judges requests by bindings.
func (p *Policy) IsAboutBy(ctx context.Context, bindings []*Binding, a *admission.Attributes) bool {
	return p.IsAbout(ctx, a) &&
		(p.findsKind && !p.servesKind(ctx, a) || slices.ContainsFunc(bindings, func(b *Binding) bool {
			_, matches, err := b.match.Matches(ctx, a)
			return matches || err != nil
		}))
}

// Govern gives the binding its terms, before its policy gets it.
func (b *Binding) Govern(t admission.Terms) { b.terms = t }

// Terms are the terms of the binding; nil: it has none.
func (b *Binding) Terms() admission.Terms { return b.terms }

// Soften turns the binding's denials since the mark, and an error, into warnings if its terms say
// so. It returns the error otherwise.
func (b *Binding) Soften(ctx context.Context, a *admission.Attributes, since admission.Mark, err error,
	r *admission.Report) error {
	if b.terms == nil {
		return err
	}
	if s := r.Stand(ctx, a, b.policy, b.terms); !s.IsDryRun {
		return err
	}
	if err != nil {
		d := Failure(metav1.StatusReasonInvalid, err.Error())
		d.Policy, d.Binding = b.policy, b.name
		r.Try(b.terms, d)
	}
	r.Soften(b.terms, since)
	return nil
}
