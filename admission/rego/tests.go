package rego

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// A TestResult says how a rule went whose name begins with 'test_'.
type TestResult struct {
	File         string
	Line, Column int
	// Package and Name are the ones of the rule, without 'data.'.
	Package, Name string
	// Skipped says why the test was not run or has no result; empty: it has one.
	Skipped string
	// Problems say why the test failed; none: it passed.
	Problems []string
	Took     time.Duration
}

// Test runs the rules of modules whose names begin with 'test_', as OPA's runner of tests does. Unlike
// there, an error of a built-in function fails a test unless the options are lenient, since it fails a policy. Results
// come in the order of the modules. The values of the other rules are noted, unless by is nil.
func Test(ctx context.Context, o Options, by Observer, modules ...Module) ([]TestResult, error) {
	return testWithin(ctx, maxTime, o, by, modules)
}

// testWithin is Test with another limit for the time of a test.
func testWithin(ctx context.Context, limit time.Duration, o Options, by Observer,
	modules []Module) ([]TestResult, error) {
	builtin.Guard()
	p := &Program{options: o, data: o.Data.orEmpty()}
	all, _, errs := p.parse(modules)
	if len(errs) > 0 {
		return nil, errs
	}
	r := &testRun{program: p, tracer: newTracer(map[spot]*Observation{}), failed: map[spot]*ast.Expr{}}
	if by != nil {
		r.tracer.observed = p.observe(all, by)
	}
	r.tracer.failed = r.noteFailure
	r.tracer.tried = r.noteCase
	p.compiler = withTestStages(p.newCompiler(true), p.sources.names())
	if p.compiler.Compile(all); p.compiler.Failed() {
		return nil, p.sources.errorsOf(p.compiler.Errors)
	}
	var results []TestResult
	for _, file := range p.sources.names() {
		for _, rule := range p.compiler.Modules[file].Rules {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if name, ref := testOf(rule); ref != nil {
				results = append(results, r.run(ctx, limit, rule, name, ref))
			}
		}
	}
	r.tracer.end()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(results, func(a, b TestResult) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
	})
	return results, nil
}

// A testRun runs the tests of a program, one after the other.
type testRun struct {
	program *Program
	tracer  *tracer
	failed  map[spot]*ast.Expr // the last expression of each rule that was not true
	tried   [][]string         // the cases that the test in progress has reached
}

func (r *testRun) noteFailure(rule *ast.Rule, at *ast.Expr) { r.failed[spotOf(rule.Location)] = at }

func (r *testRun) noteCase(name *ast.Array) { r.tried = append(r.tried, caseName(name)) }

// run runs the test that ref leads to within its package, unless its name says that it is to be skipped.
func (r *testRun) run(ctx context.Context, limit time.Duration, rule *ast.Rule, name string, ref ast.Ref) TestResult {
	path := rule.Module.Package.Path
	result := TestResult{Package: strings.TrimPrefix(path.String(), "data."), Name: ref.String()}
	result.File, result.Line, result.Column = r.program.sources.place(rule.Location)
	if strings.HasPrefix(name, skippedPrefix) {
		result.Skipped = skippedByName
		return result
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.tried = nil
	var printed bytes.Buffer
	began := time.Now()
	value, err := r.evaluate(ctx, path.Extend(ref).String(), &printed)
	result.Took = time.Since(began)
	var lacks *builtin.LackError
	if errors.As(err, &lacks) {
		result.Skipped = lacks.Error()
		return result
	}
	if err != nil {
		result.Problems = []string{r.program.testError(err)}
	} else {
		result.Problems = r.problems(rule, value)
	}
	if len(result.Problems) > 0 {
		for line := range strings.Lines(printed.String()) {
			result.Problems = append(result.Problems, "prints: "+strings.TrimRight(line, "\n"))
		}
	}
	return result
}

// evaluate returns the value of a rule; nil if it has none.
func (r *testRun) evaluate(ctx context.Context, rule string, printed io.Writer) (value any, err error) {
	p := r.program
	opa, err := p.compileQuery(rule + " = " + string(resultVar))
	if err != nil {
		return nil, err
	}
	cancel := topdown.NewCancel()
	defer context.AfterFunc(ctx, cancel.Cancel)()
	var raised []topdown.Error
	query := topdown.NewQuery(opa.body).
		WithQueryCompiler(opa.compiler).
		WithCompiler(opa.modules).
		WithStore(&store{data: p.data, input: &Input{}}).
		WithCancel(cancel).
		WithPrintHook(topdown.NewPrintHook(printed)).
		WithBuiltinErrorList(&raised).
		WithQueryTracer(r.tracer).
		WithMetrics(metrics.NoOp())
	if len(p.options.Hosts) > 0 {
		query = query.WithHTTPRoundTripper(p.roundTripper)
	}
	if p.options.Foreign {
		ctx, query = builtin.Foreign(ctx), query.WithBuiltins(builtin.Lacking())
	}
	err = query.Iter(ctx, func(found topdown.QueryResult) (err error) {
		value, err = ast.JSON(found[resultVar].Value)
		return err
	})
	if err == nil && len(raised) > 0 && !p.options.Lenient && !p.options.Foreign {
		err = &raised[0] // a policy ends there
	}
	return value, err
}

// problems say why a test did not pass, by its value.
func (r *testRun) problems(rule *ast.Rule, value any) []string {
	if rule.Head.DocKind() != ast.PartialObjectDoc {
		if value == true {
			return nil
		}
		return []string{r.whyFailed(rule)}
	}
	if value == nil {
		return []string{r.whyFailed(rule)}
	}
	all := caseOf(value)
	for _, name := range r.tried {
		all.try(name)
	}
	if !all.failed {
		return nil
	}
	problems := []string{r.whyFailed(rule)}
	for name := range all.failures {
		problems = append(problems, fmt.Sprintf("the case '%s' is not true", strings.Join(name, "/")))
	}
	return problems
}

// whyFailed says which expression of a test was not true.
func (r *testRun) whyFailed(test *ast.Rule) string {
	at := r.failed[spotOf(test.Location)]
	if at == nil || at.Location == nil || len(at.Location.Text) == 0 {
		return "the test is not true"
	}
	_, line, _ := r.program.sources.place(at.Location)
	text, _, more := strings.Cut(string(at.Location.Text), "\n")
	if more {
		text += " …"
	}
	return fmt.Sprintf("is not true in line %d: %s", line, text)
}

// testError words an error of a test.
func (p *Program) testError(err error) string {
	var failed *topdown.Error
	if errors.As(err, &failed) {
		if topdown.IsCancel(err) {
			return errTime.Error()
		}
		return p.sources.runtimeError(failed).Error()
	}
	return err.Error()
}
