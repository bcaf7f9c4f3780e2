package plan

import (
	"unicode/utf8"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// frameOf is the Frame of an evaluation that cel-go runs.
func frameOf(e *interpreter.ExecutionFrame) *Machine {
	f, _ := e.ResolveName(NameFrame)
	return f.(*Machine)
}

// dues are the costs of a step in any case.
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
	f.Arena.Charge(c.units)
	if c.bytes > 0 {
		f.count(c.bytes)
	}
	return c.InterpretableV2.Exec(e)
}

// Eval implements interpreter.Interpretable.
func (c *countUnits) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// made says how what a function makes is counted.
type made struct {
	lists bool // it is a list of new items, not a string
	pays  bool // it costs units too
}

// countMade counts what a function made.
type countMade struct {
	interpreter.InterpretableV2
	made
}

// Exec implements interpreter.InterpretableV2.
func (c *countMade) Exec(e *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableV2.Exec(e)
	c.count(frameOf(e), v)
	return v
}

// count counts a value that was made.
func (m made) count(f *Machine, v ref.Val) {
	if m.pays {
		f.Arena.Charge(size(v) / value.BytesPerUnit)
	}
	if m.lists {
		f.count(int(size(v)) * RefBytes)
	} else {
		f.Arena.CountText(v)
	}
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

// one, two and all count the work of a call by native code; c is nil if nothing is to be counted.
func (c *countedCall) one(f *Machine, v Val) {
	if c != nil {
		c.begin(f)
		c.note(f, 0, v)
		f.Arena.Charge(c.how.work(f.scratch))
	}
}

func (c *countedCall) two(f *Machine, v, w Val) {
	if c != nil {
		c.begin(f)
		c.note(f, 0, v)
		c.note(f, 1, w)
		f.Arena.Charge(c.how.work(f.scratch))
	}
}

func (c *countedCall) all(f *Machine, vals []Val) {
	if c != nil {
		c.begin(f)
		for i, v := range vals {
			c.note(f, i, v)
		}
		f.Arena.Charge(c.how.work(f.scratch))
	}
}

// forPattern is the number of characters of a literal pattern, if matching it counts; 0 if it does not.
func (c *countedCall) forPattern(pattern string) int64 {
	if c == nil {
		return 0
	}
	return int64(utf8.RuneCountInString(pattern))
}

func (c *countedCall) begin(f *Machine) { f.scratch = append(f.scratch[:0], c.sizes...) }

func (c *countedCall) note(f *Machine, i int, v Val) {
	if c.sizes[i] == unknownSize {
		f.scratch[i] = c.how.Measure(f, i, v)
	}
}

// argument is a counted argument of a call.
type argument struct {
	call *countedCall
	at   int
	last bool // of the arguments that are counted; cel-go evaluates them in order
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
	sizes := f.sizes[f.run.sizesBase+call.base:][:len(call.sizes)]
	sizes[a.at] = call.how.sizeOf(a.at, v)
	if !a.last {
		return v
	}
	for i, size := range call.sizes {
		if size != unknownSize {
			sizes[i] = size
		}
	}
	f.Arena.Charge(call.how.work(sizes))
	return v
}
