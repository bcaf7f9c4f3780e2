package cel

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Variables are the named expressions of one policy, which its other
// expressions read as variables.NAME. They are immutable.
type Variables struct {
	names    []string
	programs []*Program
	index    map[string]int
}

// Programs are the expressions in their order.
func (l *Variables) Programs() []*Program { return l.programs }

// places are the places of the variables by their names.
func (l *Variables) places() map[string]int {
	if l == nil {
		return nil
	}
	return l.index
}

// add adds a variable, or replaces the one of the same name for all expressions: as on an API server the last one
// counts, also for variables between the two, which were compiled beside the first.
func (l *Variables) add(name string, p *Program) {
	if i, ok := l.index[name]; ok {
		l.programs[i] = p
		for _, v := range l.programs { // what is known of them may come from the variable that is replaced
			v.foreign = foreignIn(v.uses, l)
		}
		return
	}
	if l.index == nil {
		l.index = make(map[string]int)
	}
	l.index[name] = len(l.names)
	l.names = append(l.names, name)
	l.programs = append(l.programs, p)
}

// OpenVariables makes variables readable through v. Each is evaluated when it is
// read first, and its value or error is kept until CloseVariables.
func (f *Frame) OpenVariables(v *Vars, l *Variables) {
	n := &v.named
	n.frame, n.vars, n.list, n.marks = f, v, l, f.Mark()
	n.values = n.values[:0]
	for range l.names {
		n.values = append(n.values, plan.Val{})
	}
}

// CloseVariables forgets the values of the variables.
func (f *Frame) CloseVariables(v *Vars) {
	n := &v.named
	if n.list == nil {
		return
	}
	clear(n.values)
	n.list = nil
	f.Forget(n.marks)
}

// named is the variable 'variables': a map whose values are computed when they are read.
type named struct {
	frame  *Frame
	vars   *Vars
	list   *Variables
	values []plan.Val
	marks  plan.Marks
}

var _ traits.Mapper = (*named)(nil)

// computing stands for a value whose evaluation has begun. The checker lets an expression see only variables declared
// before it, but dyn(variables) gets around it.
var computing = plan.ErrVal(types.NewErr("a variable refers to itself"))

// Find implements traits.Mapper.
func (n *named) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	plain := string(name)
	if value.MayBeEscaped(plain) {
		if plain, ok = apiservercel.Unescape(plain); !ok {
			return nil, false
		}
	}
	i, ok := n.list.index[plain]
	if !ok {
		return nil, false
	}
	return n.frame.Ref(n.read(i)), true
}

// read is the value of a variable, computed if it has not been read before.
func (n *named) read(i int) plan.Val {
	n.frame.Arena.Charge(1)
	if n.values[i].Kind == plan.ValUnset {
		n.values[i] = computing
		n.values[i] = n.compute(i)
	}
	v := n.values[i]
	n.frame.Arena.Charge(plan.Linear.Measure(&n.frame.Machine, 0, v) / value.BytesPerUnit)
	return v
}

func (n *named) compute(i int) plan.Val {
	p := n.list.programs[i]
	v, err := p.evalKept(n.frame, n.vars)
	if n.frame.own.tracer != nil {
		n.frame.traced(p, n.vars, n.list.names[i], err)
	}
	if err == nil {
		return v
	}
	var failure *Error
	if !errors.As(err, &failure) {
		return plan.ErrVal(types.WrapErr(err))
	}
	if failure.Fatal() {
		panic(value.Stop(failure.Cause))
	}
	return plan.ErrVal(types.NewErr("composited variable %q fails to evaluate: %v", n.list.names[i], failure.Detail))
}

// Get implements traits.Indexer.
func (n *named) Get(key ref.Val) ref.Val {
	v, found := n.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (n *named) Contains(key ref.Val) ref.Val {
	v, found := n.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (n *named) Size() ref.Val { return types.Int(len(n.list.names)) }

// Iterator implements traits.Iterable: it goes through the names.
func (n *named) Iterator() traits.Iterator { return &value.NameIterator{Names: n.list.names} }

// Equal implements ref.Val.
func (n *named) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(n)) }

// Type implements ref.Val.
func (n *named) Type() ref.Type { return types.MapType }

func (n *named) CountsItself() {}

// Value implements ref.Val.
func (n *named) Value() any { return types.NoSuchOverloadErr() }

// InOrder implements value.Ordered.
func (n *named) InOrder() {}

// String implements fmt.Stringer, for errors that print the value.
func (n *named) String() string { return n.Type().TypeName() }

// ConvertToType implements ref.Val.
func (n *named) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return n
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("disallowed conversion from 'variables' to '%s'", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (n *named) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("disallowed conversion from 'variables' to '%s'", t)
}
