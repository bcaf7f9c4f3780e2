package rego

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/plan"
)

// plan makes the plan of the query, if there is one for it.
func (q *Query) plan() {
	q.native, q.reason = plan.New(q.body, q.base)
}

// Native reports whether the query is evaluated by a plan, without OPA's evaluator, and why not.
func (q *Query) Native() (is bool, reason string) {
	if q.native == nil {
		return false, q.reason.Error()
	}
	return true, ""
}

// runNative is run by the plan.
func (q *Query) runNative(
	ctx context.Context, in *Input, b *budget, each func(topdown.QueryResult) error,
) error {
	data := &store{data: q.program.data, input: in}
	env := &plan.Env{
		Context: ctx, Input: in.term(), Cancel: b, Capabilities: q.base.Capabilities(),
		Data: func(path storage.Path) (ast.Value, error) {
			v, err := data.Read(ctx, nil, path)
			if err != nil {
				return nil, err
			}
			return v.(ast.Value), nil
		},
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
	vars := q.native.Vars()
	err := q.native.Run(env, func(values []*ast.Term) error {
		found := make(topdown.QueryResult, len(vars))
		for i, v := range vars {
			found[v] = values[i]
		}
		return each(found)
	})
	if err != nil {
		return q.failure(err, b)
	}
	return nil
}
