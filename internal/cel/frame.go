package cel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// A Frame carries what the evaluations of one request share: the cost budget,
// the deadline, and the memory that values are made in. It is taken from a pool
// by [NewFrame] and must be given back with [Frame.Release]. It may be used by
// one goroutine at a time.
type Frame struct {
	vars    *Vars // of the evaluation that runs
	program *Program
	own     Vars

	// What the running expression may still use. Below next the clock and the context are looked at; see charge.
	left, next int64
	limit      int64 // what left was when it was last settled with the budget
	shared     bool  // the limit is what the budget has left, less than ExpressionLimit
	budget     int64 // what all expressions may still use, as of the last settlement
	until      int64 // units from limit to the next look
	depth      int   // evaluations within evaluations: variables

	done     <-chan struct{}
	deadline time.Time

	objects   slab[object]
	lists     slab[list]
	members   slab[memberIterator]
	items     slab[itemIterator]
	records   slab[record]
	strings   slab[types.String]
	ints      slab[types.Int]
	doubles   slab[types.Double]
	builts    slab[built]
	cells     slab[val]
	retained  int     // values that outlive the evaluation they were made in
	held      int     // bytes of what was made; see hold
	used      bool    // the running evaluation has used a slab; see use
	sizes     []int64 // what counted calls know of their arguments; see meter.go
	sizesBase int

	evaluations []evaluation // those that run, the innermost one last

	// What native plans use.
	locals     []val // local variables of the evaluations that run
	localsBase int   // where those of the innermost one begin
	stack      []val // lists that are being made
	err        ref.Val
	recent     [4]list // arrays that were read by index
	scratch    []int64
	roots      [slots]knownRoot
	found      [foundPaths]foundPath // see native_paths.go
	epoch      uint32

	exec *interpreter.ExecutionFrame
}

// checkInterval is how many units pass between two looks at the clock and the context.
const checkInterval = 100

var frames = sync.Pool{New: func() any {
	f := &Frame{}
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
	f.done = ctx.Done()
	f.deadline, _ = ctx.Deadline()
	f.budget = PolicyBudget
	f.until = checkInterval
	return f
}

// SetDeadline makes evaluations end when the time has passed. The zero time
// means that there is no deadline but the context's.
func (f *Frame) SetDeadline(t time.Time) { f.deadline = t }

// Release gives the Frame back. Nothing that came from it may be used any more.
func (f *Frame) Release() {
	f.own.Reset()
	f.vars, f.program = nil, nil
	f.done, f.err = nil, nil
	f.depth = 0
	f.retained = 0
	f.sizesBase = 0
	f.roots = [slots]knownRoot{}
	f.reset(marks{})
	clear(f.locals[:cap(f.locals)])
	if cap(f.stack) > firstChunk*4 {
		f.stack = nil
	}
	clear(f.stack[:cap(f.stack)])
	frames.Put(f)
}

// Vars is the Frame's own set of variables, empty at first.
func (f *Frame) Vars() *Vars { return &f.own }

// SetBudget starts a new shared budget of so many units.
func (f *Frame) SetBudget(units int64) { f.budget = units }

// Budget is what is left of the shared budget, in units; never negative.
func (f *Frame) Budget() int64 { return max(f.budget, 0) }

// charge counts units of cost. It does not return when there are none left or
// the request is over.
func (f *Frame) charge(units int64) {
	f.left -= units
	if f.left < f.next {
		f.look()
	}
}

func (f *Frame) look() {
	if f.left < 0 {
		if f.shared {
			panic(stop(OverBudget))
		}
		panic(stop(OverLimit))
	}
	f.settle()
	f.until = checkInterval
	f.next = max(f.left-f.until, 0)
	if f.over() {
		panic(stop(Cancelled))
	}
}

// heldLimit is how many bytes the values that an evaluation makes, and those of the variables that it reads, may take.
// Units alone bound them too, but not as closely: functions that make lists of short strings cost little.
const heldLimit = 16 << 20

// hold counts bytes of what an expression makes.
func (f *Frame) hold(bytes int) {
	f.use()
	if f.held += bytes; f.held > heldLimit {
		panic(stop(OverLimit))
	}
}

// over tells whether the request is over.
func (f *Frame) over() bool {
	select {
	case <-f.done:
		return true
	default:
	}
	return !f.deadline.IsZero() && !time.Now().Before(f.deadline)
}

// marks are the places in all slabs.
type marks struct {
	objects, lists, members, items, records, strings, ints, doubles, builts, cells mark
	retained, held                                                                 int
}

func (f *Frame) mark() marks {
	return marks{
		f.objects.mark(), f.lists.mark(), f.members.mark(), f.items.mark(), f.records.mark(),
		f.strings.mark(), f.ints.mark(), f.doubles.mark(), f.builts.mark(), f.cells.mark(), f.retained, f.held,
	}
}

func (f *Frame) reset(m marks) {
	if f.retained != m.retained {
		return // something made since then is kept for later evaluations
	}
	f.objects.reset(m.objects)
	f.lists.reset(m.lists)
	f.members.reset(m.members)
	f.items.reset(m.items)
	f.records.reset(m.records)
	f.strings.reset(m.strings)
	f.ints.reset(m.ints)
	f.doubles.reset(m.doubles)
	f.held = m.held
	f.builts.reset(m.builts)
	f.cells.reset(m.cells)
}

// An evaluation is what begin changes and end puts back.
type evaluation struct {
	vars       *Vars
	program    *Program
	left       int64
	shared     bool
	used       bool
	sizesBase  int
	localsBase int
	stack      int
	marks      marks // set when the evaluation first uses a slab
}

// begin prepares the evaluation of one expression, within another one when that one reads a variable.
func (f *Frame) begin(p *Program, v *Vars) {
	if f.depth == len(f.evaluations) {
		f.evaluations = append(f.evaluations, evaluation{})
	}
	e := &f.evaluations[f.depth]
	e.vars, e.program, e.left, e.shared, e.used = f.vars, f.program, f.left, f.shared, f.used
	e.sizesBase, e.localsBase, e.stack = f.sizesBase, f.localsBase, len(f.stack)
	if f.depth > 0 {
		f.settle()
		f.sizesBase = len(f.sizes)
		f.localsBase = len(f.locals)
	}
	f.depth++
	f.vars, f.program = v, p
	f.used = false
	f.know(p.roots, v)
	if n := p.native; n == nil {
		f.use()
		f.sizes = append(f.sizes[:f.sizesBase], make([]int64, p.sizes)...)
	} else if n.locals > 0 {
		f.locals = slices.Grow(f.locals[:f.localsBase], n.locals)[:f.localsBase+n.locals]
	}
	f.allow(ExpressionLimit)
}

// use notes where the slabs are before the running evaluation takes anything from them.
func (f *Frame) use() {
	if !f.used && f.depth > 0 {
		f.used = true
		f.evaluations[f.depth-1].marks = f.mark()
	}
}

// end settles the evaluation with the shared budget and returns to the outer one.
func (f *Frame) end() {
	f.settle()
	f.depth--
	e := &f.evaluations[f.depth]
	f.sizes = f.sizes[:f.sizesBase]
	f.locals = f.locals[:f.localsBase]
	f.stack = f.stack[:e.stack]
	if f.used {
		f.reset(e.marks)
		f.recent = [len(f.recent)]list{}
	}
	f.sizesBase, f.localsBase = e.sizesBase, e.localsBase
	f.vars, f.program, f.used = e.vars, e.program, e.used
	if f.depth > 0 {
		f.allow(e.left)
		f.shared = f.shared || e.shared
	}
}

// settle deducts from the budget what the running expression has used.
func (f *Frame) settle() {
	used := f.limit - f.left
	f.budget -= used
	f.until -= used
	f.limit = f.left
}

// allow lets the running expression use so many units, or what the budget has.
func (f *Frame) allow(units int64) {
	f.shared = f.budget < units
	f.left = max(min(units, f.budget), 0)
	f.limit = f.left
	f.next = max(f.left-f.until, 0)
}
