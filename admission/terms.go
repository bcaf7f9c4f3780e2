package admission

import (
	"context"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Terms say how a policy stands to requests: whether it is enforced, in a dry run, or not asked at all.
// They are safe for concurrent use. A policy without terms, which most are, is always enforced.
type Terms interface {
	// Stand returns how the policy stands to the request as it is now.
	Stand(ctx context.Context, a *Attributes) Standing
	// NeedsOld reports whether Stand reads the stored object.
	NeedsOld() bool
	// ReportDryRun is called with each request for which the policy ran dry, and whether the policy
	// would have refused or changed it.
	ReportDryRun(would bool)
	// Applicability adds to an applicability of the policy what is known without an object.
	Applicability(a *Attributes, o resource.Applicability) resource.Applicability
}

// A Standing says how a policy stands to a request. The zero value is a policy that is enforced.
type Standing struct {
	// IsDryRun is set if the policy judges and refuses nothing.
	IsDryRun bool
	// Exception is the name of the exception by which the policy is not asked, and Reason is why there
	// is one.
	Exception, Reason string
}

// IsExcepted reports whether the policy is not asked.
func (s *Standing) IsExcepted() bool { return s.Exception != "" }

// termed is a policy that may have terms; nil: it has none.
type termed interface{ Terms() Terms }

// requestMatcher is a policy that reports whether it judges a request, or whether it does cannot be
// determined.
type requestMatcher interface {
	IsAbout(ctx context.Context, a *Attributes) bool
}

// termsOf returns the terms of a policy; nil if it has none.
func termsOf(p Policy) Terms {
	if g, is := p.(termed); is {
		return g.Terms()
	}
	return nil
}

// allTerms returns the terms of policies at their positions; nil if none has terms.
func allTerms[P Policy](policies []P) (all []Terms) {
	for i, p := range policies {
		if t := termsOf(p); t != nil {
			if all == nil {
				all = make([]Terms, len(policies))
			}
			all[i] = t
		}
	}
	return all
}

// dryRuns are the policies that ran dry with their results, and the ones that were not evaluated.
type dryRuns struct {
	all      []dryRun
	failures []DryRunFailure
	excepted []Excepted
}

func (t *dryRuns) isEmpty() bool { return len(t.all)+len(t.failures)+len(t.excepted) == 0 }

// dryRun is a policy that ran dry, and whether it would have refused or changed the request.
type dryRun struct {
	terms Terms
	would bool
}

// A DryRunFailure is a reason for which a policy in a dry run would have refused the request, in
// JSON as it is in the audit event.
type DryRunFailure struct {
	Message string `json:"message"`
	Policy  string `json:"policy"`
	Binding string `json:"binding,omitempty"`
	// Failed reports whether the policy failed, so that it decided nothing.
	Failed bool `json:"failed,omitempty"`
}

// Excepted names a policy that was not asked, and why not, in JSON as it is in the audit event.
type Excepted struct {
	Policy    string `json:"policy"`
	Exception string `json:"exception"`
	Reason    string `json:"reason"`
}
