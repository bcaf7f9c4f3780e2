package rego

import (
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// An Observation is the combined outcome of all evaluations of a rule.
type Observation struct{ ran, defined, undefined atomic.Bool }

// Ran reports whether the rule was evaluated.
func (o *Observation) Ran() bool { return o.ran.Load() }

// WasDefined reports whether the rule had a value once.
func (o *Observation) WasDefined() bool { return o.defined.Load() }

// WasUndefined reports whether the rule had no value once.
func (o *Observation) WasUndefined() bool { return o.undefined.Load() }

// A Rule is a rule of a program's modules, or the part of one behind an else.
type Rule struct {
	File string
	Line int
	// Name is the name within the package.
	Name string
	// IsFact says that the rule is written without a condition.
	IsFact bool
}

// An Observer returns the place to record the outcomes of a rule. It returns the same Observation
// for the same rule.
type Observer func(Rule) *Observation

// Rules are the rules of the program's modules, in no order.
func (p *Program) Rules() (all []Rule) {
	p.observe(p.modules(), func(r Rule) *Observation {
		all = append(all, r)
		return nil
	})
	return all
}

// Observe makes the program record the outcomes of its rules, for the coverage of tests. It must be
// called before the program is in use.
func (p *Program) Observe(by Observer) {
	p.observed = p.observe(p.modules(), by)
	p.compiler = p.compiled() // evaluations are many
}

// spot is the position of a rule according to OPA.
type spot struct {
	file     string
	row, col int
}

func spotOf(l *ast.Location) spot {
	if l == nil {
		return spot{}
	}
	return spot{l.File, l.Row, l.Col}
}

// observe returns the observations of the rules of modules as they are written. Tests have none.
func (p *Program) observe(modules map[string]*ast.Module, by Observer) map[spot]*Observation {
	all := map[spot]*Observation{}
	for name, m := range modules {
		if p.sources[name].Tests {
			continue
		}
		for _, first := range m.Rules {
			for r := first; r != nil; r = r.Else {
				one := Rule{Name: r.Head.Ref().GroundPrefix().String(), IsFact: r.Default || isFact(r.Body)}
				one.File, one.Line, _ = p.sources.place(r.Location)
				all[spotOf(r.Location)] = by(one)
			}
		}
	}
	return all
}

func isFact(b ast.Body) bool {
	if len(b) != 1 {
		return len(b) == 0
	}
	t, ok := b[0].Terms.(*ast.Term)
	return ok && !b[0].Negated && len(b[0].With) == 0 && t.Value.Compare(ast.Boolean(true)) == 0
}

// A tracer notes which rules an evaluation enters, and which of them have values then. It belongs to
// one goroutine.
type tracer struct {
	observed map[spot]*Observation
	entered  map[uint64]*ast.Rule // and not left with a value yet, by OPA's number of the query
	failed   func(rule *ast.Rule, at *ast.Expr)
	tried    func(name *ast.Array) // a case of a test
}

func newTracer(observed map[spot]*Observation) *tracer {
	return &tracer{observed: observed, entered: map[uint64]*ast.Rule{}}
}

var _ topdown.QueryTracer = (*tracer)(nil)

// Enabled implements topdown.QueryTracer.
func (t *tracer) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (t *tracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (t *tracer) TraceEvent(e topdown.Event) {
	rule, isRule := e.Node.(*ast.Rule)
	switch {
	case e.Op == topdown.EnterOp && isRule:
		t.leave(e.QueryID) // of a query before this one
		t.entered[e.QueryID] = rule
		if o := t.observed[spotOf(rule.Location)]; o != nil {
			o.ran.Store(true)
		}
	case e.Op == topdown.ExitOp && isRule:
		delete(t.entered, e.QueryID)
		if o := t.observed[spotOf(rule.Location)]; o != nil {
			o.defined.Store(true)
		}
	case e.Op == topdown.FailOp && t.failed != nil:
		if at, ok := e.Node.(*ast.Expr); ok && t.entered[e.QueryID] != nil {
			t.failed(t.entered[e.QueryID], at)
		}
	case e.Op == topdown.TestCaseOp && t.tried != nil:
		if name, ok := e.Node.(*ast.Expr).Operand(0).Value.(*ast.Array); ok {
			t.tried(name)
		}
	}
}

// leave notes that a rule was left without a value.
func (t *tracer) leave(query uint64) {
	if rule := t.entered[query]; rule != nil {
		delete(t.entered, query)
		if o := t.observed[spotOf(rule.Location)]; o != nil {
			o.undefined.Store(true)
		}
	}
}

// end notes which rules were left without a value.
func (t *tracer) end() {
	for query := range t.entered {
		t.leave(query)
	}
}
