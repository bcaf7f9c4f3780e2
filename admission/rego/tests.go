package rego

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// A TestResult says how a rule went whose name begins with 'test_'.
type TestResult struct {
	File string
	Line int
	// Package and Name are the ones of the rule, without 'data.'.
	Package, Name string
	// Skipped says that the name begins with 'todo_', as with OPA.
	Skipped bool
	// Problems say why the test failed; none: it passed.
	Problems []string
	Took     time.Duration
}

// Test runs the rules of modules whose names begin with 'test_', by OPA's own runner. Unlike there,
// an error of a built-in function fails a test, since it fails a policy. Results come in the order
// of the modules. The values of the other rules are noted, unless that is nil.
func Test(ctx context.Context, o Options, by Observer, modules ...Module) ([]TestResult, error) {
	return testWithin(ctx, maxTime, o, by, modules)
}

// testWithin is Test with another limit for the time of a test.
func testWithin(ctx context.Context, limit time.Duration, o Options, by Observer, modules []Module) ([]TestResult, error) {
	builtin.Guard()
	p := &Program{options: o, data: o.Data.orEmpty()}
	all, _, errs := p.parse(modules)
	if len(errs) > 0 {
		return nil, errs
	}
	data, err := p.dataAsGo()
	if err != nil {
		return nil, err
	}
	r := &testRun{program: p, failed: map[spot]*ast.Expr{}}
	t := newTracer(map[spot]*Observation{})
	if by != nil {
		t.observed = p.observe(all, by)
	}
	t.failed = r.noteFailure
	store := inmem.NewFromObject(data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Abort(ctx, txn)
	found, err := tester.NewRunner().
		SetCompiler(p.newCompiler(true)).
		SetModules(all).
		SetStore(store).
		SetParallel(1). // the tracer is for one test at a time
		SetTimeout(limit).
		RaiseBuiltinErrors(true).
		SetCoverageQueryTracer(t).
		RunTests(ctx, txn)
	if err != nil {
		return nil, p.sources.errorsOf(err)
	}
	var results []TestResult
	for one := range found {
		results = append(results, r.result(one))
	}
	t.end()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(results, func(a, b TestResult) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
	})
	return results, nil
}

// dataAsGo is the document data as OPA's store takes it.
func (p *Program) dataAsGo() (map[string]any, error) {
	text, err := appendJSON(nil, p.data)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	data := map[string]any{}
	return data, d.Decode(&data)
}

// A testRun has what is known of tests beside their results.
type testRun struct {
	program *Program
	mu      sync.Mutex
	failed  map[spot]*ast.Expr // the last expression of each rule that was not true
}

func (r *testRun) noteFailure(rule *ast.Rule, at *ast.Expr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[spotOf(rule.Location)] = at
}

func (r *testRun) result(one *tester.Result) TestResult {
	result := TestResult{
		Package: strings.TrimPrefix(one.Package, "data."), Name: one.Name, Skipped: one.Skip, Took: one.Duration,
	}
	result.File, result.Line, _ = r.program.sources.place(one.Location)
	switch {
	case one.Error != nil:
		result.Problems = append(result.Problems, r.program.testError(one.Error))
	case one.Fail:
		result.Problems = append(result.Problems, r.whyFailed(one))
		for path, sub := range one.SubResults.Iter {
			if sub.Fail && len(sub.SubResults) == 0 {
				result.Problems = append(result.Problems, fmt.Sprintf("the case '%s' is not true", strings.Join(path, "/")))
			}
		}
	}
	if len(result.Problems) > 0 {
		for line := range strings.Lines(string(one.Output)) {
			result.Problems = append(result.Problems, "prints: "+strings.TrimRight(line, "\n"))
		}
	}
	return result
}

// whyFailed says which expression of a test was not true.
func (r *testRun) whyFailed(one *tester.Result) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.failed[spotOf(one.Location)]
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
