package rego

import (
	"cmp"
	"context"
	"slices"

	"github.com/admission-gateway/gateway/admission"
)

// ReadsOthers reports whether rules may read other objects than the one in the request.
func (p *Policy) ReadsOthers() bool { return p.NeedsOld() || p.HasParams() || len(p.states) > 0 }

// FiredBy returns the function to call with the rules that have a value for a request; nil if that
// is not wanted.
func FiredBy(a *admission.Attributes) func(Rule) {
	if a.Frame == nil {
		return nil
	}
	to, asks := a.Frame.Tracer().(interface {
		Fired(name, file string, line int)
	})
	if !asks {
		return nil
	}
	return func(r Rule) { to.Fired(r.Name, r.File, r.Line) }
}

// tellFired reports the rules that had a value, in the order of their lines. It evaluates the query
// once more for that, as it is written, with a budget of its own.
func (q *Query) tellFired(ctx context.Context, in *Input) {
	defer func() {
		_ = recover() // of OPA; the evaluation that counts has failed too, and said so
	}()
	p := q.program
	type observed struct {
		rule Rule
		seen *Observation
	}
	var rules []observed
	t := newTracer(p.observe(p.modules(), func(r Rule) *Observation {
		one := observed{r, new(Observation)}
		rules = append(rules, one)
		return one.seen
	}))
	b := newBudget(ctx, p.budget(), in.Deadline, nil)
	defer b.end()
	if q.iterate(ctx, q.topdown(in, b).WithQueryTracer(t), b, func(solution) error { return nil }) != nil {
		return
	}
	slices.SortStableFunc(rules, func(a, b observed) int {
		return cmp.Or(cmp.Compare(a.rule.File, b.rule.File), cmp.Compare(a.rule.Line, b.rule.Line))
	})
	for _, one := range rules {
		if one.seen.WasDefined() {
			in.Fired(one.rule)
		}
	}
}
