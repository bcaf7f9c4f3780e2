package admission

import (
	"context"
	"slices"

	"github.com/admission-gateway/gateway/internal/status"
)

// stand returns how a policy of the chain stands to the request, and whether it is to be asked.
func (r *Report) stand(ctx context.Context, a *Attributes, p Policy, t Terms) (tried, asked bool) {
	if m, is := p.(requestMatcher); is && !isAbout(ctx, m, a) {
		return false, false
	}
	s := r.Stand(ctx, a, p.Name(), t)
	return s.IsDryRun, !s.IsExcepted()
}

// isAbout is true for a policy that panics: it is asked then, and fails.
func isAbout(ctx context.Context, m requestMatcher, a *Attributes) (is bool) {
	defer func() {
		if recover() != nil {
			is = true
		}
	}()
	return m.IsAbout(ctx, a)
}

// Stand returns how a policy that matches the request is enforced for it, and records that. Terms
// that fail hold nothing back: the policy is enforced.
func (r *Report) Stand(ctx context.Context, a *Attributes, policy string, t Terms) (s Standing) {
	if t == nil {
		return s
	}
	defer func() {
		if recover() != nil {
			s = Standing{}
		}
		switch {
		case s.IsExcepted():
			r.NoteException(policy, s.Exception, s.Reason)
		case s.IsDryRun:
			r.dryRun(t)
		}
	}()
	return t.Stand(ctx, a)
}

// dryRun returns the dry run of a policy. Several parts of a request are one dry run.
func (r *Report) dryRun(t Terms) *dryRun {
	for i := range r.dryRuns.all {
		if r.dryRuns.all[i].terms == t {
			return &r.dryRuns.all[i]
		}
	}
	r.dryRuns.all = append(r.dryRuns.all, dryRun{terms: t})
	return &r.dryRuns.all[len(r.dryRuns.all)-1]
}

// OnceEnforced ends the warnings of policies in a dry run.
const OnceEnforced = ": this request will be refused once it is enforced"

// Try warns of the denials of a policy, were it enforced.
func (r *Report) Try(t Terms, d status.Denial) {
	r.Warn(d.Warning() + OnceEnforced)
	r.NoteDryRun(t, &DryRunFailure{d.Cause.Message, d.Policy, d.Binding, d.Failed})
}

// NoteDryRun notes the dry run of a policy and, unless it is nil, a failure that it would have refused.
func (r *Report) NoteDryRun(t Terms, f *DryRunFailure) {
	run := r.dryRun(t)
	if f == nil {
		return
	}
	run.would = run.would || !f.Failed
	if !slices.Contains(r.dryRuns.failures, *f) {
		r.dryRuns.failures = append(r.dryRuns.failures, *f)
	}
}

// TryChange warns of the changes of a policy, were it enforced.
func (r *Report) TryChange(t Terms, policy string) {
	r.dryRun(t).would = true
	r.Warn(status.PolicyWarns(policy, "the object will be changed once it is enforced"))
}

// A Mark is how much there was in a report.
type Mark struct{ denials, failures int }

// Mark returns how much there is, for Soften.
func (r *Report) Mark() Mark { return Mark{len(r.denials), len(r.dryRuns.failures)} }

// Grew reports whether there are more denials than there were.
func (r *Report) Grew(since Mark) bool { return len(r.denials) > since.denials }

// refuses reports whether the policy would have refused the request, and did not only fail.
func (f DryRunFailure) refuses() bool { return !f.Failed }

// Soften makes warnings of the denials since the mark, whose policy is only tried.
func (r *Report) Soften(t Terms, since Mark) {
	run := r.dryRun(t)
	run.would = run.would || slices.ContainsFunc(r.dryRuns.failures[since.failures:], DryRunFailure.refuses)
	for _, d := range r.denials[since.denials:] {
		r.Try(t, d)
	}
	clear(r.denials[since.denials:])
	r.denials = r.denials[:since.denials]
}

// NoteException notes that a policy was not asked because of an exception.
func (r *Report) NoteException(policy, exception, reason string) {
	e := Excepted{policy, exception, reason}
	if !slices.Contains(r.dryRuns.excepted, e) {
		r.dryRuns.excepted = append(r.dryRuns.excepted, e)
	}
}

// Exceptions are the policies that were not asked because of exceptions.
func (r *Report) Exceptions() []Excepted { return r.dryRuns.excepted }

// DryRunFailures are the reasons for which policies in a dry run would have refused the request.
func (r *Report) DryRunFailures() []DryRunFailure { return r.dryRuns.failures }

// ReportDryRuns reports the results of dry runs to the terms of their policies. Each call reports them once.
func (r *Report) ReportDryRuns() {
	for _, t := range r.dryRuns.all {
		t.terms.ReportDryRun(t.would)
	}
	clear(r.dryRuns.all)
	r.dryRuns.all = r.dryRuns.all[:0]
}
