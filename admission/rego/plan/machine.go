package plan

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// A step does one thing, and then runs what follows it, once for each way in which it succeeds. It
// returns false to end the evaluation of the body that it is in: because of m.err, or because the
// body's first solution is enough.
type step interface{ run(m *machine) bool }

// A link is a step that others follow.
type link interface {
	step
	follow(next step)
}

// seq is a part of each link.
type seq struct{ next step }

func (s *seq) follow(next step) { s.next = next }

// A block is a body with an end of its own. It is filled in after the steps that run it.
type block struct{ start step }

// A machine has the state of one evaluation. Rules are not recursive, so each variable has one
// place for its value, and each rule has one in each frame.
type machine struct {
	env   Env
	slots []Value
	frame *frame // what the step that runs sees
	root  frame
	free  []*frame
	lists []list
	found []bool      // by body: it has a solution
	stack []*ast.Term // operands of built-in functions
	err   error
	each  func(values []*ast.Term) error

	context  topdown.BuiltinContext
	output   *ast.Term
	has      bool
	keep     func(*ast.Term) error // keeps the value of a built-in function in output
	resolver resolver
	members  uint // that were scanned
}

func newMachine(p *Plan) *machine {
	m := &machine{
		slots: make([]Value, p.slots), root: frame{docs: make([]document, p.rulesets)},
		lists: make([]list, p.lists), found: make([]bool, p.bodies),
	}
	m.keep = func(t *ast.Term) error {
		m.output, m.has = t, true
		return nil
	}
	m.resolver.machine = m
	return m
}

// begin prepares for an evaluation.
func (m *machine) begin(env Env) {
	m.env, m.err, m.frame = env, nil, &m.root
	m.context = topdown.BuiltinContext{
		Context: env.Context, Metrics: metrics.NoOp(), Seed: rand.Reader,
		Cancel: env.Cancel, PrintHook: env.Print,
		RoundTripper: env.RoundTripper, Capabilities: env.Capabilities, QueryID: 1,
	}
}

// end forgets what the evaluation saw.
func (m *machine) end() {
	clear(m.slots)
	m.root.clear()
	clear(m.lists)
	clear(m.stack[:cap(m.stack)])
	m.members = 0
	m.stack = m.stack[:0]
	m.env, m.each, m.output, m.err = Env{}, nil, nil, nil
	m.context = topdown.BuiltinContext{}
}

// keepTime sets what functions see that depend on the time, or on an earlier call.
func (m *machine) keepTime() {
	if m.context.Time == nil {
		m.context.Time = ast.NumberTerm(json.Number(strconv.FormatInt(time.Now().UnixNano(), 10)))
		m.context.Cache = builtins.Cache{}
		m.context.RequestMetadata = map[string]any{}
	}
}

// goesOn takes a step from the budget. It returns false if there is none left.
func (m *machine) goesOn() bool {
	if m.env.Cancel == nil || !m.env.Cancel.Cancelled() {
		return true
	}
	m.err = &topdown.Error{Code: topdown.CancelErr, Message: "caller cancelled query execution"}
	if err := context.Cause(m.env.Context); err != nil {
		m.err = (&topdown.Error{Code: topdown.CancelErr, Message: err.Error()}).Wrap(err)
	}
	return false
}

// spent returns about how many bytes the evaluation took.
func (m *machine) spent() int64 {
	if m.env.Cancel == nil {
		return 0
	}
	return m.env.Cancel.Spent()
}

// relaxed returns how many errors counted as undefined values.
func (m *machine) relaxed() int {
	if m.env.Relaxed == nil {
		return 0
	}
	return m.env.Relaxed.Count
}

// membersOfStep is how many members of a value are scanned for a step of the budget.
const membersOfStep = 64

// scans counts a member of a value. It returns false if the budget has no step left for it.
func (m *machine) scans() bool {
	m.members++
	return m.members%membersOfStep != 0 || m.goesOn()
}

// A tick takes a step from the budget, as OPA does before each expression.
type tick struct{ seq }

func (t *tick) run(m *machine) bool { return m.goesOn() && t.next.run(m) }
