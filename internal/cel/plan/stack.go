package plan

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// growStack makes room on the stack, on which lists are made.
func (f *Machine) growStack() {
	n := max(2*cap(f.stack), value.FirstChunk)
	if n*RefBytes >= 2*value.MadeLimit {
		panic(value.Stop(value.OverLimit)) // the list would be
	}
	if n > value.FirstChunk*4 {
		f.use()
		f.Arena.MakeRoom(n * RefBytes)
	}
	stack := make([]Val, len(f.stack), n)
	copy(stack, f.stack)
	f.stack = stack
}

// A built list is one that an expression made. Its items do not change once it is made.
type built struct {
	vals []Val
	Made ref.Val // the list as cel-go has it: of a literal, and of a policy's variable once it was asked for
	Kept bool    // it is a policy's variable
}

func (b *built) ref(f *Machine) ref.Val {
	if b.Made != nil {
		return b.Made
	}
	f.Arena.Charge(int64(len(b.vals)) / value.BytesPerUnit)
	f.count(len(b.vals) * RefBytes)
	vals := make([]ref.Val, len(b.vals))
	for i, v := range b.vals {
		vals[i] = f.Ref(v)
	}
	list := types.NewRefValList(types.DefaultTypeAdapter, vals)
	if b.Kept {
		b.Made = list
		f.Retained++ // the items are of this evaluation
	}
	return list
}

// push puts a value on the stack, on which lists are made.
func (f *Machine) push(v Val) {
	if len(f.stack) == cap(f.stack) {
		f.growStack()
	}
	f.stack = append(f.stack, v)
}

// newBuilt makes a list of what was put on the stack since the mark.
func (f *Machine) newBuilt(mark int) Val {
	f.use()
	b := f.builts.Take()
	f.count((len(f.stack) - mark) * valBytes)
	b.vals = f.cells.TakeAll(f.stack[mark:])
	f.stack = f.stack[:mark]
	return listVal(b)
}
