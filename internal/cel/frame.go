package cel

import (
	"context"
	"sync"
	"time"

	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Frame carries what the evaluations of one request share: the cost budget,
// the deadline, and the memory that values are made in. It is taken from a pool
// by [NewFrame] and must be given back with [Frame.Release]. It may be used by
// one goroutine at a time.
type Frame struct {
	plan.Machine
	own Vars

	vars    *Vars // of the evaluation that runs
	program *Program
	outer   []evaluation // those around it

	exec *interpreter.ExecutionFrame
}

// An evaluation is one around the evaluation that runs.
type evaluation struct {
	vars    *Vars
	program *Program
}

var frames = sync.Pool{New: func() any {
	f := &Frame{}
	f.Serve(activation{f})
	exec, err := interpreter.NewExecutionFrame(activation{f})
	if err != nil {
		panic(err) // it fails only for what is no Activation
	}
	f.exec = exec // never closed: an evaluation leaves its root frame as it was
	return f
}}

// NewFrame takes a Frame from the pool. Evaluations end with an [Error] of cause
// Cancelled soon after ctx is done or its deadline has passed. The shared budget
// is [PolicyBudget].
func NewFrame(ctx context.Context) *Frame {
	f := frames.Get().(*Frame)
	f.Arena.Start(ctx, PolicyBudget)
	return f
}

// Release gives the Frame back. Nothing that came from it may be used any more.
func (f *Frame) Release() {
	f.own.Reset()
	f.vars, f.program = nil, nil
	f.outer = f.outer[:0]
	f.Machine.Release()
	frames.Put(f)
}

// SetBudget starts a new shared budget of so many units.
func (f *Frame) SetBudget(units int64) { f.Arena.SetBudget(units) }

// Budget returns the rest of the shared budget, in units; it is never negative.
func (f *Frame) Budget() int64 { return f.Arena.Budget() }

// Spent returns how many units all evaluations of the Frame have used so far.
func (f *Frame) Spent() int64 { return f.Arena.Spent() }

// SetDeadline makes evaluations end when the time has passed. The zero time
// means that there is no deadline but the context's.
func (f *Frame) SetDeadline(t time.Time) { f.Arena.SetDeadline(t) }

// Deadline is when evaluations end; the zero time if there is none.
func (f *Frame) Deadline() time.Time { return f.Arena.Deadline() }

// SetMemory sets the bound of the memory that evaluations take, up to Release. If that is refused
// they end with an [Error] of cause Refused.
func (f *Frame) SetMemory(m value.Memory) { f.Arena.SetMemory(m) }

// Memory bounds the memory that evaluations take; nil for no bound.
func (f *Frame) Memory() value.Memory { return f.Arena.Memory() }

// Vars is the Frame's own set of variables, empty at first.
func (f *Frame) Vars() *Vars { return &f.own }

// enter prepares the evaluation of one expression, which needs so much room, within another one when that one reads a
// variable.
func (f *Frame) enter(p *Program, size *plan.FrameSize, v *Vars) {
	f.outer = append(f.outer, evaluation{f.vars, f.program})
	f.vars, f.program = v, p
	if p.observed != nil {
		p.observed.ran.Store(true)
	}
	f.Begin(size, p.optionalOld, &v.Bindings, ExpressionLimit)
}

// leave charges the shared budget for the evaluation and returns to the outer one.
func (f *Frame) leave() {
	f.End()
	last := len(f.outer) - 1
	f.vars, f.program = f.outer[last].vars, f.outer[last].program
	f.outer[last] = evaluation{}
	f.outer = f.outer[:last]
}
