package plan

import (
	"cmp"
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// cel-go goes through a map that an expression makes as Go's maps are, in another order each time.
// The result of a loop would differ between equal requests: the items of a list, and which of two
// failures is reported. Loops go through such a map in the order of its keys.

// inOrder returns a value as a loop goes through it.
func inOrder(v ref.Val) ref.Val {
	m, isMap := v.(traits.Mapper)
	if _, isOrdered := v.(value.Ordered); !isMap || isOrdered {
		return v
	}
	size, ok := m.Size().(types.Int)
	if !ok || size < 2 {
		return v
	}
	return &orderedMap{Mapper: m}
}

// orderedMap is a map whose iterator is in the order of the keys.
type orderedMap struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m *orderedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortStableFunc(keys, compareKeys)
	return &keyIterator{keys: keys}
}

// compareKeys compares keys of a map: booleans, then numbers, then texts.
func compareKeys(a, b ref.Val) int {
	if by := cmp.Compare(rankOf(a), rankOf(b)); by != 0 {
		return by
	}
	if c, is := a.(traits.Comparer); is {
		if by, is := c.Compare(b).(types.Int); is {
			return int(by)
		}
	}
	return 0
}

func rankOf(key ref.Val) int {
	switch key.(type) {
	case types.Bool:
		return 0
	case types.Int, types.Uint, types.Double:
		return 1
	case types.String:
		return 2
	}
	return 3
}

// keyIterator goes through keys.
type keyIterator struct {
	traits.Iterator // only HasNext and Next are asked for
	keys            []ref.Val
}

// HasNext implements traits.Iterator.
func (i *keyIterator) HasNext() ref.Val { return types.Bool(len(i.keys) > 0) }

// Next implements traits.Iterator.
func (i *keyIterator) Next() ref.Val {
	next := i.keys[0]
	i.keys = i.keys[1:]
	return next
}

// Orders lets cel-go's loops go through maps in the order of their keys.
type Orders struct{ ranges map[int64]bool } // what loops are over, by its id

// NewOrders returns the orders of a checked expression.
func NewOrders(ast *celast.AST) *Orders {
	o := &Orders{ranges: map[int64]bool{}}
	celast.PostOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.ComprehensionKind {
			o.ranges[e.AsComprehension().IterRange().ID()] = true
		}
	}))
	return o
}

// Decorate plans the ordering. cel-go calls it for every node of a plan.
func (o *Orders) Decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if !o.ranges[i.ID()] {
		return i, nil
	}
	if attribute, is := i.(interpreter.InterpretableAttribute); is {
		return &orderedAttribute{attribute}, nil // cel-go may go on to select a member of it
	}
	return &orderedRange{i}, nil
}

// orderedAttribute is an attribute that a loop is over.
type orderedAttribute struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (a *orderedAttribute) Exec(e *interpreter.ExecutionFrame) ref.Val {
	return inOrder(a.InterpretableAttribute.Exec(e))
}

// Eval implements interpreter.Interpretable.
func (a *orderedAttribute) Eval(of interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(of))
}

// orderedRange is what a loop is over.
type orderedRange struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (r *orderedRange) Exec(e *interpreter.ExecutionFrame) ref.Val {
	return inOrder(r.InterpretableV2.Exec(e))
}

// Eval implements interpreter.Interpretable.
func (r *orderedRange) Eval(a interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(a))
}
