package rego

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// unknowns come with a request; the parameters and the rest of data are known before.
var unknowns = func() (all []*ast.Term) {
	for _, ref := range []string{
		"input.review", "input.http", "input.attributes", "input.request", "input.parsed_path", "input.parsed_query", "input.parsed_body",
		"input.truncated_body", "data." + inventoryName, "data." + stateName,
	} {
		all = append(all, ast.MustParseTerm(ref))
	}
	return all
}()

// With returns the query for parameters that are known when it is loaded: what follows from them
// alone is evaluated now. They are input.parameters of each evaluation whose [Input] has no
// parameters of its own.
func (q *Query) With(parameters Value) (*Query, error) {
	bound := *q
	bound.parameters = parameters
	if !parameters.Valid() {
		return &bound, nil
	}
	compiler, body, err := q.partial(parameters)
	if err != nil {
		return &bound, nil // the request's evaluation says what is wrong
	}
	bound.body, bound.base, bound.whole = body, compiler, q
	bound.compiler = compiler.QueryCompiler().WithEnablePrintStatements(q.program.options.Print != nil)
	bound.plan()
	return &bound, nil
}

// partial evaluates the query as far as the parameters allow for it.
func (q *Query) partial(parameters Value) (c *ast.Compiler, body ast.Body, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the partial evaluation failed")
		}
	}()
	p := q.program
	ctx := context.Background()
	in := &Input{Parameters: parameters}
	bodies, support, err := topdown.NewQuery(q.body).
		WithQueryCompiler(q.compiler).
		WithCompiler(p.compiler).
		WithStore(&store{data: p.data, input: in}).
		WithInput(in.term()).
		WithUnknowns(unknowns).
		WithCancel(newBudget(ctx, p.budget(), in.Deadline, nil)).
		WithStrictBuiltinErrors(true).
		WithMetrics(metrics.NoOp()).
		PartialRun(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(bodies) != 1 {
		return nil, nil, fmt.Errorf("there are %d queries left", len(bodies))
	}
	modules := make(map[string]*ast.Module, len(p.compiler.Modules)+len(support))
	for name, m := range p.parsed {
		modules[name] = m
	}
	for i, m := range support {
		modules[fmt.Sprintf("partial/%d", i)] = m
	}
	if c, err = p.compiled(modules); err != nil {
		return nil, nil, err
	}
	if body, err = c.QueryCompiler().WithEnablePrintStatements(p.options.Print != nil).Compile(bodies[0]); err != nil {
		return nil, nil, err
	}
	return c, body, nil
}
