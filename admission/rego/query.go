package rego

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"

	"github.com/admission-gateway/gateway/admission/rego/plan"
)

// A Query is a rule of a program, prepared for requests. It is immutable and safe for concurrent
// use.
type Query struct {
	program    *Program
	rule, text string
	opa        *opaQuery // nil once the program is sealed
	parameters Value     // of each evaluation whose input has none of its own
	isLenient  bool
	native     *plan.Plan
	reason     error // why there is none
}

// resultVar is the variable that the value of the rule is bound to.
const resultVar = ast.Var("result")

// Query prepares a rule, such as data.policy.deny.
func (p *Program) Query(rule string) (*Query, error) {
	if !p.Has(rule) {
		return nil, fmt.Errorf("no module defines '%s'", rule)
	}
	return p.prepare(rule, "result = "+rule)
}

func (p *Program) prepare(rule, text string) (*Query, error) {
	q := &Query{program: p, rule: rule, text: text}
	var err error
	if q.opa, err = p.compileQuery(text); err != nil {
		return nil, p.sources.errorsOf(err)
	}
	q.native, q.reason = plan.New(q.opa.body, q.opa.modules)
	return q, nil
}

// An opaQuery is a query as OPA's evaluator takes it.
type opaQuery struct {
	modules  *ast.Compiler
	compiler ast.QueryCompiler
	body     ast.Body
}

func (p *Program) compileQuery(text string) (*opaQuery, error) {
	body, err := ast.ParseBodyWithOpts(text,
		ast.ParserOptions{RegoVersion: p.version(), Capabilities: p.capabilities()})
	if err != nil {
		return nil, err
	}
	q := &opaQuery{modules: p.compiled()}
	q.compiler = q.modules.QueryCompiler().WithEnablePrintStatements(p.options.Print != nil)
	q.body, err = q.compiler.Compile(body)
	return q, err
}

// orCompiled returns the query as OPA's evaluator takes it.
func (q *Query) orCompiled() *opaQuery {
	if q.opa != nil {
		return q.opa
	}
	compiled, err := q.program.compileQuery(q.text)
	if err != nil {
		panic(err) // it was compiled before
	}
	return compiled
}

// With returns the query for parameters: they are input.parameters of each evaluation whose [Input]
// has none of its own. It shares the compiled modules and the plan with the query.
func (q *Query) With(parameters Value) *Query {
	bound := *q
	bound.parameters = parameters
	return &bound
}

// Lenient returns the query with OPA's own way with errors of built-in functions: the value of the
// call is undefined then, and the evaluation goes on. [Input.Relaxed] is called with them.
func (q *Query) Lenient() *Query {
	lenient := *q
	lenient.isLenient = true
	return &lenient
}

// ErrUndefined is the error about a rule that has no value for a request.
var ErrUndefined = errors.New("the rule has no value for the request")

// Value evaluates the rule. The error is [ErrUndefined] if the rule has no value.
func (q *Query) Value(ctx context.Context, in *Input) (Value, error) {
	term, err := q.run(ctx, in, nil)
	value := Value{term: term}
	switch {
	case err != nil:
		return Value{}, err
	case term == nil:
		return Value{}, fmt.Errorf("%s: %w", q.rule, ErrUndefined)
	}
	if in.Evaluated != nil {
		in.Evaluated(q.rule, value)
	}
	return value, nil
}

// A solution has the values of the variables of a query, by OPA's evaluator or by a plan.
type solution struct {
	found  topdown.QueryResult
	vars   []ast.Var
	values []*ast.Term
}

// value returns the value of a variable; nil if it has none.
func (s *solution) value(of ast.Var) *ast.Term {
	if i := slices.Index(s.vars, of); i >= 0 {
		return s.values[i]
	}
	return s.found[of]
}

// An evaluation is room for what one run of a query takes.
type evaluation struct {
	input  Input
	store  store
	budget budget
	each   func(solution) error
	vars   []ast.Var
	result *ast.Term // the value of the rule in the last solution
	solve  func(values []*ast.Term) error
}

// evaluation returns room for a run.
func (p *Program) evaluation() *evaluation {
	if e, ok := p.evaluations.Get().(*evaluation); ok {
		return e
	}
	e := new(evaluation)
	e.solve = func(values []*ast.Term) error { return e.add(solution{vars: e.vars, values: values}) }
	return e
}

// release keeps the room for another run, unless a connection to a host may still read it.
func (p *Program) release(e *evaluation) {
	e.budget.end()
	if len(p.options.Hosts) == 0 {
		*e = evaluation{solve: e.solve}
		p.evaluations.Put(e)
	}
}

func (e *evaluation) add(s solution) error {
	if e.each != nil {
		return e.each(s)
	}
	e.result = s.value(resultVar)
	return nil
}

// run evaluates the query, and calls each for each solution. It returns the value of the rule in the
// last one if each is nil. A panic of OPA's is an error.
func (q *Query) run(ctx context.Context, in *Input, each func(solution) error) (result *ast.Term, err error) {
	p := q.program
	e := p.evaluation()
	defer func() {
		if r := recover(); r != nil { // the room is not used again
			e.budget.end()
			result, err = nil, fmt.Errorf("%s: the evaluation failed with an internal error", q.rule)
			return
		}
		p.release(e)
	}()
	if e.input, e.each = *in, each; !e.input.Parameters.Valid() {
		e.input.Parameters = q.parameters
	}
	if in.Fired != nil && len(p.options.Hosts) == 0 { // no host is asked twice
		defer q.tellFired(ctx, &e.input)
	}
	if p.observed != nil {
		err = q.runObserved(ctx, e)
		return e.result, err
	}
	e.budget.begin(ctx, p.budget(), in.Deadline, in.Memory)
	var relaxed *plan.IgnoredErrors
	if q.isLenient {
		relaxed = &plan.IgnoredErrors{}
		defer func() {
			if relaxed.Count > 0 && in.Relaxed != nil {
				in.Relaxed(q.failure(relaxed.First, &e.budget))
			}
		}()
	}
	if q.native != nil {
		err = q.runNative(ctx, e, relaxed)
	} else {
		err = q.runOPA(ctx, e, relaxed)
	}
	return e.result, err
}

// runOPA is run by OPA's evaluator.
func (q *Query) runOPA(ctx context.Context, e *evaluation, relaxed *plan.IgnoredErrors) error {
	b := &e.budget
	if _, err := e.input.Value(); err != nil {
		return q.failure(err, b)
	}
	query := q.topdown(&e.input, b)
	if relaxed == nil {
		return q.iterate(ctx, query, b, e.add)
	}
	var found []topdown.Error
	err := q.iterate(ctx, query.WithBuiltinErrorList(&found), b, e.add)
	if relaxed.Count = len(found); relaxed.Count > 0 {
		relaxed.First = &found[0]
	}
	return err
}

// runObserved is run for the coverage of tests. It evaluates the rules as they are written. A rule
// that OPA's index leaves out, because its value cannot matter, would not be noted, so that all
// rules are evaluated once more without the index, for what is noted alone.
func (q *Query) runObserved(ctx context.Context, e *evaluation) error {
	p, in := q.program, &e.input
	b := newBudget(ctx, p.budget(), in.Deadline, nil)
	t := newTracer(p.observed)
	if err := q.iterate(ctx, q.topdown(in, b).WithQueryTracer(t), b, e.add); err != nil {
		return err
	}
	t.end()
	again := newBudget(ctx, p.budget(), in.Deadline, nil)
	t = newTracer(p.observed)
	if q.iterate(ctx, q.topdown(in, again).WithQueryTracer(t).WithIndexing(false), again,
		func(solution) error { return nil }) == nil {
		t.end()
	}
	return nil
}

// topdown prepares OPA's evaluation of the query.
func (q *Query) topdown(in *Input, b *budget) *topdown.Query {
	opa := q.orCompiled()
	return topdown.NewQuery(opa.body).
		WithQueryCompiler(opa.compiler).
		WithCompiler(opa.modules).
		WithStore(&store{data: q.program.data, input: in}).
		WithInput(in.term()).
		WithCancel(b).
		WithStrictBuiltinErrors(!q.isLenient).
		WithMetrics(metrics.NoOp())
}

func (q *Query) iterate(ctx context.Context, query *topdown.Query, b *budget, each func(solution) error) error {
	p := q.program
	if p.options.Print != nil {
		query = query.WithPrintHook(printer{p})
	}
	if len(p.options.Hosts) > 0 {
		query = query.WithHTTPRoundTripper(p.roundTripper)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, b.deadline)
		defer cancel()
	}
	if err := query.Iter(ctx,
		func(found topdown.QueryResult) error { return each(solution{found: found}) }); err != nil {
		return q.failure(err, b)
	}
	return nil
}

func (p *Program) budget() int64 {
	if p.options.Budget > 0 {
		return p.options.Budget
	}
	return DefaultBudget
}

// failure says why an evaluation failed, with the position.
func (q *Query) failure(err error, b *budget) error {
	if b.why != nil {
		return fmt.Errorf("%s: %w", q.rule, b.why)
	}
	var failed *topdown.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", q.rule, q.program.sources.runtimeError(failed))
	}
	return fmt.Errorf("%s: %w", q.rule, err)
}

// printer hands on what modules print.
type printer struct{ program *Program }

// Print implements print.Hook.
func (p printer) Print(at print.Context, text string) error {
	file, line, _ := p.program.sources.place(at.Location)
	p.program.options.Print(file, line, text)
	return nil
}

// A Violation says what is wrong with a request by a rule.
type Violation struct {
	Message string
	// Field and Reason are the violation's, Code the status code of the answer; empty if the module
	// does not say.
	Field, Reason string
	Code          int
	// Details are the details as JSON; nil if there are none.
	Details []byte
}

// Violations evaluates a rule whose value is a set or a list of violations: of texts, or of objects
// with the members msg, field, reason, code and details. A boolean is a violation without a message
// if it is true. Violations come in OPA's order of their details, and then of their messages, as
// Gatekeeper lists them.
func (q *Query) Violations(ctx context.Context, in *Input) ([]Violation, error) {
	value, err := q.Value(ctx, in)
	if err != nil {
		return nil, err
	}
	var items []*ast.Term
	switch v := value.term.Value.(type) {
	case ast.Set:
		if v.Len() == 0 {
			return nil, nil
		}
		items = v.Slice()
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { items = append(items, t) })
	case ast.Object: // a partial object, whose keys are the violations
		items = v.Keys()
	case ast.Boolean:
		if !v {
			return nil, nil
		}
		return []Violation{{}}, nil
	default:
		return nil, fmt.Errorf("%s: the value must be a set of violations, not %s", q.rule, ast.ValueName(v))
	}
	slices.SortStableFunc(items, compareViolations)
	all := make([]Violation, 0, len(items))
	for _, t := range items {
		v, err := violationOf(t.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.rule, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// The names of the members of a violation.
var (
	msgTerm     = ast.StringTerm("msg")
	fieldTerm   = ast.StringTerm("field")
	reasonTerm  = ast.StringTerm("reason")
	codeTerm    = ast.StringTerm("code")
	detailsTerm = ast.StringTerm("details")
	noDetails   = ast.ObjectTerm()
)

func compareViolations(a, b *ast.Term) int {
	x, ok := a.Value.(ast.Object)
	y, alike := b.Value.(ast.Object)
	if !ok || !alike {
		return ast.Compare(a.Value, b.Value)
	}
	if c := ast.Compare(member(x, detailsTerm, noDetails).Value, member(y, detailsTerm, noDetails).Value); c != 0 {
		return c
	}
	return ast.Compare(member(x, msgTerm, noDetails).Value, member(y, msgTerm, noDetails).Value)
}

func member(o ast.Object, name, otherwise *ast.Term) *ast.Term {
	if t := o.Get(name); t != nil {
		return t
	}
	return otherwise
}

func violationOf(value ast.Value) (v Violation, err error) {
	if text, ok := value.(ast.String); ok {
		return Violation{Message: strings.Clone(string(text))}, nil
	}
	o, ok := value.(ast.Object)
	if !ok {
		return v, fmt.Errorf("a violation must be a string or an object, not %s", ast.ValueName(value))
	}
	for _, m := range []struct {
		name *ast.Term
		into *string
	}{{msgTerm, &v.Message}, {fieldTerm, &v.Field}, {reasonTerm, &v.Reason}} {
		t := o.Get(m.name)
		if t == nil {
			if m.name == msgTerm {
				return v, errors.New("a violation must have a member 'msg'")
			}
			continue
		}
		text, ok := t.Value.(ast.String)
		if !ok {
			return v, fmt.Errorf("the member %s of a violation must be a string, not %s", m.name,
				ast.ValueName(t.Value))
		}
		*m.into = string(text)
	}
	if t := o.Get(codeTerm); t != nil {
		n, _ := t.Value.(ast.Number)
		code, ok := n.Int()
		if !ok || code < 400 || code > 599 {
			return v, errors.New("the member 'code' of a violation must be a status code from 400 to 599")
		}
		v.Code = code
	}
	if t := o.Get(detailsTerm); t != nil {
		v.Details, err = appendJSON(nil, t.Value)
	}
	return v, err
}

// Allowed evaluates a rule that says whether a request is allowed, as policies for Envoy's and
// Kong's OPA plugins have it: a boolean, or an object with the member allowed or allow. What has
// another value, or none, is not allowed. The Violation says why, if the object does.
func (q *Query) Allowed(ctx context.Context, in *Input) (bool, Violation, error) {
	value, err := q.Value(ctx, in)
	if err != nil {
		return false, Violation{}, err
	}
	switch v := value.term.Value.(type) {
	case ast.Boolean:
		return bool(v), Violation{}, nil
	case ast.Object:
		return allowedBy(v)
	}
	return false, Violation{}, fmt.Errorf("%s: the value must be a boolean or an object, not %s", q.rule,
		ast.ValueName(value.term.Value))
}

// allowedBy reads the object that Envoy's plugin takes: allowed, http_status, body; Kong's has
// allow, status, message.
func allowedBy(o ast.Object) (bool, Violation, error) {
	var v Violation
	for _, name := range []string{"body", "message", "msg"} {
		if t := o.Get(ast.StringTerm(name)); t != nil && v.Message == "" {
			v.Message = textOf(t)
		}
	}
	for _, name := range []string{"http_status", "status"} {
		if t := o.Get(ast.StringTerm(name)); t != nil && v.Code == 0 {
			n, _ := t.Value.(ast.Number)
			if code, ok := n.Int(); ok && code >= 400 && code <= 599 {
				v.Code = code
			}
		}
	}
	for _, name := range []string{"allowed", "allow"} {
		if t := o.Get(ast.StringTerm(name)); t != nil {
			allowed, ok := t.Value.(ast.Boolean)
			if !ok {
				return false, v, fmt.Errorf("the member '%s' must be a boolean, not %s", name, ast.ValueName(t.Value))
			}
			return bool(allowed), v, nil
		}
	}
	return false, v, errors.New("the object must have a member 'allowed' or 'allow'")
}
