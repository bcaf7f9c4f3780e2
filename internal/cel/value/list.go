package value

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-gateway/gateway/internal/document"
)

// List is an array of a document as a CEL list. Without a type it behaves as cel-go's list of a decoded array does,
// with one as Kubernetes' unstructuredList does.
type List struct {
	Arena *Arena
	Node  document.Node
	Typ   *Type

	// The tape is a chain. Going on from the item read last by index is all that reading in order takes; the first step
	// back makes an index.
	at    int
	item  document.Node
	index []document.Node
}

var (
	_ traits.Lister   = (*List)(nil)
	_ traits.Foldable = (*List)(nil)
	_ traits.Zeroer   = (*List)(nil)
)

func (f *Arena) newList(n document.Node, t *Type) ref.Val {
	l := f.lists.Take()
	*l = List{Arena: f, Node: n, Typ: t}
	return l
}

func (l *List) itemType() *Type {
	if l.Typ == nil {
		return nil
	}
	return l.Typ.Items
}

// roundUnits is the cost of going on to the next item or member: less than any round does in
// Kubernetes.
const roundUnits = 2

// StepsPerUnit is how many links of the tape's chain cost a unit.
const StepsPerUnit = 8

// Nth is the item at the index, which must be within the list.
func (l *List) Nth(i int) document.Node {
	if l.index != nil {
		l.Arena.Charge(1)
		return l.index[i]
	}
	if !l.item.Valid() {
		l.item = l.Node.First()
	}
	if i < l.at {
		l.Arena.Charge(1 + int64(l.Node.Len())/StepsPerUnit)
		l.index = make([]document.Node, 0, l.Node.Len())
		for n := l.Node.First(); n.Valid(); n = n.Next() {
			l.index = append(l.index, n)
		}
		return l.index[i]
	}
	l.Arena.Charge(1 + int64(i-l.at)/StepsPerUnit)
	for l.at < i {
		l.item = l.item.Next()
		l.at++
	}
	return l.item
}

// Get implements traits.Indexer.
func (l *List) Get(index ref.Val) ref.Val {
	if l.Typ == nil {
		i, err := types.IndexOrError(index)
		if err != nil {
			return types.ValOrErr(index, "%v", err)
		}
		if i < 0 || i >= l.Node.Len() {
			return types.NewErr("index '%d' out of range in list size '%d'", i, l.Node.Len())
		}
		return l.Arena.Value(l.Nth(i), nil)
	}
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || i >= types.Int(l.Node.Len()) {
		return types.NewErr("index out of bounds: %v", index)
	}
	return l.Arena.Typed(l.Nth(int(i)), l.Typ.Items)
}

// Contains implements traits.Container.
func (l *List) Contains(elem ref.Val) ref.Val {
	if l.Typ == nil {
		for n := l.Node.First(); n.Valid(); n = n.Next() {
			l.Arena.Charge(1)
			if elem.Equal(l.Arena.Value(n, nil)) == types.True {
				return types.True
			}
		}
		return types.False
	}
	if types.IsUnknownOrError(elem) {
		return elem
	}
	var failed ref.Val
	for n := l.Node.First(); n.Valid(); n = n.Next() {
		l.Arena.Charge(1)
		eq := l.Arena.Typed(n, l.Typ.Items).Equal(elem)
		if eq == types.True {
			return types.True
		}
		if _, ok := eq.(types.Bool); !ok && failed == nil {
			failed = types.MaybeNoSuchOverloadErr(eq)
		}
	}
	if failed != nil {
		return failed
	}
	return types.False
}

// Size implements traits.Sizer.
func (l *List) Size() ref.Val { return types.Int(l.Node.Len()) }

// IsZeroValue implements traits.Zeroer; see object.
func (l *List) IsZeroValue() bool { return l.Typ == nil && l.Node.Len() == 0 }

// Iterator implements traits.Iterable.
func (l *List) Iterator() traits.Iterator {
	it := l.Arena.items.Take()
	*it = itemIterator{list: l, next: l.Node.First()}
	return it
}

// Fold implements traits.Foldable, for comprehensions with two variables.
func (l *List) Fold(folder traits.Folder) {
	it := itemIterator{list: l, next: l.Node.First()}
	for i := types.Int(0); it.next.Valid(); i++ {
		if !folder.FoldEntry(i, it.Next()) {
			return
		}
	}
}

// Equal implements ref.Val.
func (l *List) Equal(other ref.Val) ref.Val {
	if l.unordered() {
		return l.kubernetes().Equal(plainVal(other))
	}
	o, ok := other.(traits.Lister)
	if !ok {
		if l.Typ == nil {
			return types.False
		}
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	i := types.IntZero
	for n := l.Node.First(); n.Valid(); n = n.Next() {
		l.Arena.Charge(1)
		v := l.Arena.Value(n, l.itemType())
		if l.Typ == nil {
			if types.Equal(v, o.Get(i)) == types.False {
				return types.False
			}
		} else if eq := v.Equal(o.Get(i)); eq != types.True {
			return eq // false, or an error
		}
		i++
	}
	return types.True
}

// Add implements traits.Adder.
func (l *List) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.unordered() {
		return l.kubernetes().(traits.Adder).Add(plainVal(other))
	}
	if l.Typ == nil {
		return types.NewRefValList(types.DefaultTypeAdapter, l.values()).(traits.Adder).Add(o.(ref.Val))
	}
	values := l.values()
	for it := o.Iterator(); it.HasNext() == types.True; {
		l.Arena.Charge(1)
		values = append(values, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func (l *List) values() []ref.Val {
	values := make([]ref.Val, 0, l.Node.Len())
	for n := l.Node.First(); n.Valid(); n = n.Next() {
		l.Arena.Charge(1)
		values = append(values, l.Arena.Value(n, l.itemType()))
	}
	return values
}

// unordered reports whether the order of items means nothing, as with x-kubernetes-list-type set
// and map.
func (l *List) unordered() bool { return l.Typ != nil && l.Typ.Kind == KindUnorderedList }

// kubernetes is the list as Kubernetes' own value. How sets and lists that are maps are compared and added is too much
// to do twice, and too seldom asked for.
func (l *List) kubernetes() ref.Val {
	return common.UnstructuredToVal(l.Value(), l.Typ.kubernetes())
}

// plainVal replaces a list that Kubernetes' values would have to look into.
func plainVal(v ref.Val) ref.Val {
	if l, ok := v.(*List); ok && l.unordered() {
		return l.kubernetes()
	}
	return v
}

// Type implements ref.Val.
func (l *List) Type() ref.Type { return types.ListType }

// Value implements ref.Val: the decoded array.
func (l *List) Value() any {
	l.Arena.Charge(int64(len(l.Node.Raw())) / BytesPerUnit)
	return native(l.Node)
}

// ConvertToType implements ref.Val.
func (l *List) ConvertToType(t ref.Type) ref.Val { return convertList(l, t) }

// convertList is the conversion of every kind of list.
func convertList(l ref.Val, t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.ListType, t.TypeName())
}

// ConvertToNative implements ref.Val.
func (l *List) ConvertToNative(t reflect.Type) (any, error) {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).ConvertToNative(t)
}

// itemIterator goes through the items of a list.
type itemIterator struct {
	noValue
	list *List
	next document.Node
}

// HasNext implements traits.Iterator.
func (it *itemIterator) HasNext() ref.Val { return types.Bool(it.next.Valid()) }

// Next implements traits.Iterator.
func (it *itemIterator) Next() ref.Val {
	n := it.next
	if !n.Valid() {
		return nil
	}
	it.list.Arena.Charge(roundUnits)
	it.next = n.Next()
	return it.list.Arena.Value(n, it.list.itemType())
}
