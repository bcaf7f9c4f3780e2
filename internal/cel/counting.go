package cel

import (
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// frameOf is the Frame of an evaluation that cel-go runs.
func frameOf(e *interpreter.ExecutionFrame) *Frame {
	f, _ := e.ResolveName(nameFrame)
	return f.(*Frame)
}

// dues are what a step costs in any case.
type dues struct {
	units int64
	bytes int // of what it makes
}

// countUnits counts the dues of a step before it is run.
type countUnits struct {
	interpreter.InterpretableV2
	dues
}

// Exec implements interpreter.InterpretableV2.
func (c *countUnits) Exec(e *interpreter.ExecutionFrame) ref.Val {
	f := frameOf(e)
	f.charge(c.units)
	if c.bytes > 0 {
		f.hold(c.bytes)
	}
	return c.InterpretableV2.Exec(e)
}

// Eval implements interpreter.Interpretable.
func (c *countUnits) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// countMade counts the items of a list that a function made.
type countMade struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (c *countMade) Exec(e *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableV2.Exec(e)
	frameOf(e).hold(int(size(v)) * refBytes)
	return v
}

// Eval implements interpreter.Interpretable.
func (c *countMade) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// countedCall is a call whose work is counted before it is done.
type countedCall struct {
	how   *cost
	sizes []int64 // of literal arguments
	base  int     // of this call's arguments among all remembered sizes
}

const unknownSize = -1

// one, two and all count the work of a call by native code; c is nil where nothing is to be counted.
func (c *countedCall) one(f *Frame, v val) {
	if c != nil {
		c.begin(f)
		c.note(f, 0, v)
		f.charge(c.how.work(f.scratch))
	}
}

func (c *countedCall) two(f *Frame, v, w val) {
	if c != nil {
		c.begin(f)
		c.note(f, 0, v)
		c.note(f, 1, w)
		f.charge(c.how.work(f.scratch))
	}
}

func (c *countedCall) all(f *Frame, vals []val) {
	if c != nil {
		c.begin(f)
		for i, v := range vals {
			c.note(f, i, v)
		}
		f.charge(c.how.work(f.scratch))
	}
}

// forPattern is the size of a literal pattern, if matching it counts.
func (c *countedCall) forPattern(pattern string) int64 {
	if c == nil {
		return 0
	}
	return int64(len(pattern)) + 1
}

func (c *countedCall) begin(f *Frame) { f.scratch = append(f.scratch[:0], c.sizes...) }

func (c *countedCall) note(f *Frame, i int, v val) {
	if c.sizes[i] == unknownSize {
		f.scratch[i] = c.how.measure(f, v)
	}
}

// argument is a counted argument of a call.
type argument struct {
	call *countedCall
	at   int
	last bool // of those that are counted; cel-go evaluates them in order
}

// countArgument remembers the size of an argument and, at the last one, counts the call's work.
type countArgument struct {
	interpreter.InterpretableV2
	argument *argument
}

// Exec implements interpreter.InterpretableV2.
func (c *countArgument) Exec(e *interpreter.ExecutionFrame) ref.Val {
	return c.argument.count(e, c.InterpretableV2.Exec(e))
}

// Eval implements interpreter.Interpretable.
func (c *countArgument) Eval(a interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(a))
}

// countAttribute is countArgument for an argument that is an attribute in cel-go's terms.
type countAttribute struct {
	interpreter.InterpretableAttribute
	argument *argument
}

// Exec implements interpreter.InterpretableV2.
func (c *countAttribute) Exec(e *interpreter.ExecutionFrame) ref.Val {
	return c.argument.count(e, c.InterpretableAttribute.Exec(e))
}

// Eval implements interpreter.Interpretable.
func (c *countAttribute) Eval(a interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(a))
}

// count notes the size of the argument's value, which it returns.
func (a *argument) count(e *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	call := a.call
	f := frameOf(e)
	sizes := f.sizes[f.sizesBase+call.base:][:len(call.sizes)]
	sizes[a.at] = call.how.size(v)
	if !a.last {
		return v
	}
	for i, size := range call.sizes {
		if size != unknownSize {
			sizes[i] = size
		}
	}
	f.charge(call.how.work(sizes))
	return v
}
