package rego

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/admission-gateway/gateway/admission/rego/plan"
)

// Rule is the rule, such as data.policy.deny.
func (q *Query) Rule() string { return q.rule }

// Native reports whether the query is evaluated by a plan, without OPA's evaluator, and why not.
func (q *Query) Native() (is bool, reason string) {
	if q.native == nil {
		return false, q.reason.Error()
	}
	return true, ""
}

// runNative is run by the plan.
func (q *Query) runNative(ctx context.Context, e *evaluation, relaxed *plan.IgnoredErrors) error {
	b := &e.budget
	e.store = store{data: q.program.data, input: &e.input}
	e.vars = q.native.Vars()
	env := plan.Env{
		Context: ctx, Documents: &e.store, Cancel: b,
		Relaxed: relaxed,
		Shared:  e.input.Shared, Capabilities: q.program.usable,
	}
	if q.program.options.Print != nil {
		env.Print = printer{q.program}
	}
	if len(q.program.options.Hosts) > 0 {
		env.RoundTripper = q.program.roundTripper
		var cancel context.CancelFunc
		env.Context, cancel = context.WithDeadline(ctx, b.deadline)
		defer cancel()
	}
	if err := q.native.Run(env, e.solve); err != nil {
		return q.failure(err, b)
	}
	return nil
}

// HasInput implements plan.Documents.
func (s *store) HasInput() bool { return s.input.isSet() }

// Whole implements plan.Documents.
func (s *store) Whole() *ast.Term { return s.input.term() }

// Outline implements plan.Documents.
func (s *store) Outline() *ast.Term { return s.input.outline() }

// Member implements plan.Documents.
func (s *store) Member(name string) plan.Value {
	m := s.input.member(name)
	if m.part != nil {
		return plan.Unmade(m.part)
	}
	return plan.Made(m.term)
}

// Err implements plan.Documents.
func (s *store) Err() error { return s.input.err() }

// Data implements plan.Documents.
func (s *store) Data(path storage.Path) (ast.Value, error) {
	v, err := s.Read(context.Background(), nil, path)
	if err != nil {
		return nil, err
	}
	return v.(ast.Value), nil
}
