package value

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/document"
)

// Documents is a collection of objects as a CEL list.
type Documents struct {
	Arena *Arena
	Of    []document.Node
}

func (l *Documents) at(i int) ref.Val {
	l.Arena.Charge(1)
	return l.Arena.Value(l.Of[i], nil)
}

// Get implements traits.Indexer.
func (l *Documents) Get(index ref.Val) ref.Val {
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if i < 0 || i >= len(l.Of) {
		return types.NewErr("index '%d' out of range in list size '%d'", i, len(l.Of))
	}
	return l.at(i)
}

// Contains implements traits.Container.
func (l *Documents) Contains(elem ref.Val) ref.Val {
	for i := range l.Of {
		if elem.Equal(l.at(i)) == types.True {
			return types.True
		}
	}
	return types.False
}

// Size implements traits.Sizer.
func (l *Documents) Size() ref.Val { return types.Int(len(l.Of)) }

// IsZeroValue implements traits.Zeroer.
func (l *Documents) IsZeroValue() bool { return len(l.Of) == 0 }

// Iterator implements traits.Iterable.
func (l *Documents) Iterator() traits.Iterator { return &documentIterator{list: l} }

// Fold implements traits.Foldable, for comprehensions with two variables.
func (l *Documents) Fold(folder traits.Folder) {
	for i := range l.Of {
		if !folder.FoldEntry(types.Int(i), l.at(i)) {
			return
		}
	}
}

// Equal implements ref.Val.
func (l *Documents) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok || o.Size() != l.Size() {
		return types.False
	}
	for i := range l.Of {
		if types.Equal(l.at(i), o.Get(types.Int(i))) == types.False {
			return types.False
		}
	}
	return types.True
}

func (l *Documents) values() []ref.Val {
	values := make([]ref.Val, len(l.Of))
	for i := range l.Of {
		values[i] = l.at(i)
	}
	return values
}

// Add implements traits.Adder.
func (l *Documents) Add(other ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).(traits.Adder).Add(other)
}

// Type implements ref.Val.
func (l *Documents) Type() ref.Type { return types.ListType }

// Value implements ref.Val: the decoded objects.
func (l *Documents) Value() any {
	all := make([]any, len(l.Of))
	for i, n := range l.Of {
		l.Arena.Charge(1 + int64(len(n.Raw()))/BytesPerUnit)
		all[i] = native(n)
	}
	return all
}

// ConvertToType implements ref.Val.
func (l *Documents) ConvertToType(t ref.Type) ref.Val { return convertList(l, t) }

// ConvertToNative implements ref.Val.
func (l *Documents) ConvertToNative(t reflect.Type) (any, error) {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).ConvertToNative(t)
}

// documentIterator goes through a collection.
type documentIterator struct {
	noValue
	list *Documents
	next int
}

// HasNext implements traits.Iterator.
func (it *documentIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.list.Of)) }

// Next implements traits.Iterator.
func (it *documentIterator) Next() ref.Val {
	if it.next == len(it.list.Of) {
		return nil
	}
	it.next++
	return it.list.at(it.next - 1)
}
