package admission

import (
	"context"
	"slices"

	"github.com/admission-gateway/gateway/internal/status"
)

// stand returns how a policy of the chain stands to the request, and whether it is to be asked.
func (r *Report) stand(ctx context.Context, a *Attributes, p Policy, t Terms) (tried, asked bool) {
	if m, is := p.(matching); is && !isAbout(ctx, m, a) {
		return false, false
	}
	s := r.Stand(ctx, a, p.Name(), t)
	return s.IsTried, !s.IsExcepted()
}

// isAbout is true for a policy that panics: it is asked then, and fails.
func isAbout(ctx context.Context, m matching, a *Attributes) (is bool) {
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
		case s.IsTried:
			r.try(t)
		}
	}()
	return t.Stand(ctx, a)
}

// try returns the trial of a policy. Several parts of a request are one trial.
func (r *Report) try(t Terms) *trial {
	for i := range r.trials.all {
		if r.trials.all[i].terms == t {
			return &r.trials.all[i]
		}
	}
	r.trials.all = append(r.trials.all, trial{terms: t})
	return &r.trials.all[len(r.trials.all)-1]
}

// OnceEnforced ends the warnings of policies that are only tried.
const OnceEnforced = ": this request will be refused once it is enforced"

// Try warns of the denials of a policy, were it enforced.
func (r *Report) Try(t Terms, d status.Denial) {
	r.Warn(d.Warning() + OnceEnforced)
	r.NoteTrial(t, &TriedFailure{d.Cause.Message, d.Policy, d.Binding, d.Failed})
}

// NoteTrial notes that a policy was tried and, unless it is nil, a failure that it would have refused.
func (r *Report) NoteTrial(t Terms, f *TriedFailure) {
	trial := r.try(t)
	if f == nil {
		return
	}
	trial.would = trial.would || !f.Failed
	if !slices.Contains(r.trials.failures, *f) {
		r.trials.failures = append(r.trials.failures, *f)
	}
}

// TryChange warns of the changes of a policy, were it enforced.
func (r *Report) TryChange(t Terms, policy string) {
	r.try(t).would = true
	r.Warn(status.PolicyWarns(policy, "the object will be changed once it is enforced"))
}

// A Mark is how much there was in a report.
type Mark struct{ denials, tried int }

// Mark returns how much there is, for Soften.
func (r *Report) Mark() Mark { return Mark{len(r.denials), len(r.trials.failures)} }

// Grew reports whether there are more denials than there were.
func (r *Report) Grew(since Mark) bool { return len(r.denials) > since.denials }

// refuses reports whether the policy would have refused the request, and did not only fail.
func (f TriedFailure) refuses() bool { return !f.Failed }

// Soften makes warnings of the denials since the mark, whose policy is only tried.
func (r *Report) Soften(t Terms, since Mark) {
	trial := r.try(t)
	trial.would = trial.would || slices.ContainsFunc(r.trials.failures[since.tried:], TriedFailure.refuses)
	for _, d := range r.denials[since.denials:] {
		r.Try(t, d)
	}
	clear(r.denials[since.denials:])
	r.denials = r.denials[:since.denials]
}

// NoteException notes that a policy was not asked because of an exception.
func (r *Report) NoteException(policy, exception, reason string) {
	e := Excepted{policy, exception, reason}
	if !slices.Contains(r.trials.excepted, e) {
		r.trials.excepted = append(r.trials.excepted, e)
	}
}

// Exceptions are the policies that were not asked because of exceptions.
func (r *Report) Exceptions() []Excepted { return r.trials.excepted }

// TriedFailures are the reasons for which policies that are only tried would have refused the request.
func (r *Report) TriedFailures() []TriedFailure { return r.trials.failures }

// Settle reports the results of the tried policies to their terms. Each call reports them once.
func (r *Report) Settle() {
	for _, t := range r.trials.all {
		t.terms.Tried(t.would)
	}
	clear(r.trials.all)
	r.trials.all = r.trials.all[:0]
}
