package plan

import (
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Machine runs native plans: it holds their variables, and what they make.
type Machine struct {
	Arena  value.Arena
	others Variables // that are no nodes

	run   running // the evaluation that runs
	calls []call  // the evaluations around it and it, the innermost one last
	depth int     // of them

	locals  []Val   // local variables of all of these
	sizes   []int64 // what counted calls of all of these know of their arguments
	stack   []Val   // lists that are being made
	scratch []int64
	Err     ref.Val

	builts   value.Slab[built]
	cells    value.Slab[Val]
	Retained int // values that outlive the evaluation they were made in

	recent [4]value.List // arrays that were read by index
	paths  foundPaths
}

// running is the state of one evaluation, which one within it replaces until that is over.
type running struct {
	nodes       *value.Bindings
	optionalOld bool // oldSelf is an optional value
	used        bool // it has used a slab; see use
	sizesBase   int  // where its sizes begin
	localsBase  int  // where its local variables begin
}

// Variables are the variables that hold no nodes.
type Variables interface {
	// Global is the value of a variable by its name.
	Global(name string) (any, bool)
	// Composited is the value of a variable of the policy; false if there is no such variable.
	Composited(i int, name string) (Val, bool)
}

// Serve makes the machine ask for variables that are no nodes.
func (f *Machine) Serve(others Variables) { f.others = others }

// Release forgets everything that was made.
func (f *Machine) Release() {
	f.run.nodes, f.Err = nil, nil
	f.depth = 0
	f.Retained = 0
	f.Arena.Release()
	f.run.sizesBase = 0
	f.paths.roots = [value.Slots]knownRoot{}
	f.Reset(Marks{})
	clear(f.locals[:cap(f.locals)])
	if cap(f.stack) > value.FirstChunk*4 {
		f.stack = nil
	}
	clear(f.stack[:cap(f.stack)])
}

// Marks are the places in all slabs.
type Marks struct {
	places        value.ArenaMarks
	builts, cells value.Mark
	Retained      int
}

// Mark returns the current positions of the slabs.
func (f *Machine) Mark() Marks {
	return Marks{f.Arena.Marks(), f.builts.Mark(), f.cells.Mark(), f.Retained}
}

// Reset gives back what was made since the marks were set, unless it is kept.
func (f *Machine) Reset(m Marks) {
	if f.Retained != m.Retained {
		return // something made since then is kept for later evaluations
	}
	f.Arena.GiveBack(m.places)
	f.builts.Reset(m.builts)
	f.cells.Reset(m.cells)
}

// Forget is Reset for values that were kept for later evaluations, too.
func (f *Machine) Forget(m Marks) {
	f.Retained = m.Retained
	f.Reset(m)
}

// count counts bytes of what an expression makes.
func (f *Machine) count(bytes int) {
	f.use()
	f.Arena.Take(bytes)
}

// A call holds what Begin changes and End restores.
type call struct {
	outer   running
	allowed value.Running
	stack   int
	marks   Marks // set when the evaluation first uses a slab
}

// A FrameSize is the room that an evaluation needs on the machine.
type FrameSize struct {
	Roots  []value.Slot // the variables that hold nodes
	Native bool
	Locals int // of native plans
	Sizes  int // of plans of cel-go
}

// Begin prepares the evaluation of one expression, within another one when that one reads a variable.
func (f *Machine) Begin(size *FrameSize, optionalOld bool, v *value.Bindings, limit int64) {
	if f.depth == len(f.calls) {
		f.calls = append(f.calls, call{})
	}
	e := &f.calls[f.depth]
	e.outer, e.allowed, e.stack = f.run, f.Arena.Running(), len(f.stack)
	if f.depth > 0 {
		f.Arena.ChargeBudget()
		f.run.sizesBase = len(f.sizes)
		f.run.localsBase = len(f.locals)
	}
	f.depth++
	f.run.nodes, f.run.optionalOld = v, optionalOld
	f.run.used = false
	f.know(size.Roots, v)
	if !size.Native {
		f.use()
		f.sizes = append(f.sizes[:f.run.sizesBase], make([]int64, size.Sizes)...)
	} else if size.Locals > 0 {
		f.locals = slices.Grow(f.locals[:f.run.localsBase], size.Locals)[:f.run.localsBase+size.Locals]
	}
	f.Arena.Allow(limit)
}

// use notes the positions of the slabs before the running evaluation takes anything from them.
func (f *Machine) use() {
	if !f.run.used && f.depth > 0 {
		f.run.used = true
		f.calls[f.depth-1].marks = f.Mark()
	}
}

// Again is End and Begin for an evaluation that follows one with the same variables, and for which Begin made room.
func (f *Machine) Again(optionalOld bool, limit int64) {
	f.finish()
	f.run.optionalOld, f.run.used = optionalOld, false
	f.Arena.Allow(limit)
}

// End charges the shared budget for the evaluation and returns to the outer one.
func (f *Machine) End() {
	f.finish()
	f.depth--
	f.sizes = f.sizes[:f.run.sizesBase]
	f.locals = f.locals[:f.run.localsBase]
	e := &f.calls[f.depth]
	f.run = e.outer
	if f.depth > 0 {
		f.Arena.Resume(e.allowed)
	}
}

// finish charges the shared budget for the evaluation, and gives back what it made.
func (f *Machine) finish() {
	f.Arena.ChargeBudget()
	e := &f.calls[f.depth-1]
	f.stack = f.stack[:e.stack]
	if f.run.used {
		f.giveBack(e)
	}
	if f.depth == 1 && f.Retained == 0 {
		f.Arena.Retire()
	}
}

// giveBack gives back what the evaluation made.
func (f *Machine) giveBack(e *call) {
	f.Reset(e.marks)
	f.recent = [len(f.recent)]value.List{}
}
