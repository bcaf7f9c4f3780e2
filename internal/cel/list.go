package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-gateway/gateway/internal/document"
)

// list is an array of a document as a CEL list. Without a type it behaves as cel-go's list of a decoded array does, with
// one as Kubernetes' unstructuredList does.
type list struct {
	frame *Frame
	node  document.Node
	typ   *Type

	// The tape is a chain. Going on from the item read last by index is all that reading in order takes; the first step
	// back makes an index.
	at    int
	item  document.Node
	index []document.Node
}

var (
	_ traits.Lister   = (*list)(nil)
	_ traits.Foldable = (*list)(nil)
	_ traits.Zeroer   = (*list)(nil)
)

func (f *Frame) newList(n document.Node, t *Type) ref.Val {
	l := f.lists.take()
	*l = list{frame: f, node: n, typ: t}
	return l
}

func (l *list) itemType() *Type {
	if l.typ == nil {
		return nil
	}
	return l.typ.items
}

// roundUnits is what going on to the next item or member costs: less than any round does in Kubernetes.
const roundUnits = 2

// stepsPerUnit is how many links of the tape's chain cost a unit.
const stepsPerUnit = 8

// nth is the item at the index, which must be within the list.
func (l *list) nth(i int) document.Node {
	if l.index != nil {
		l.frame.charge(1)
		return l.index[i]
	}
	if !l.item.Valid() {
		l.item = l.node.First()
	}
	if i < l.at {
		l.frame.charge(1 + int64(l.node.Len())/stepsPerUnit)
		l.index = make([]document.Node, 0, l.node.Len())
		for n := l.node.First(); n.Valid(); n = n.Next() {
			l.index = append(l.index, n)
		}
		return l.index[i]
	}
	l.frame.charge(1 + int64(i-l.at)/stepsPerUnit)
	for l.at < i {
		l.item = l.item.Next()
		l.at++
	}
	return l.item
}

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	if l.typ == nil {
		i, err := types.IndexOrError(index)
		if err != nil {
			return types.ValOrErr(index, "%v", err)
		}
		if i < 0 || i >= l.node.Len() {
			return types.NewErr("index '%d' out of range in list size '%d'", i, l.node.Len())
		}
		return l.frame.value(l.nth(i), nil)
	}
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || i >= types.Int(l.node.Len()) {
		return types.NewErr("index out of bounds: %v", index)
	}
	return l.frame.typed(l.nth(int(i)), l.typ.items)
}

// Contains implements traits.Container.
func (l *list) Contains(elem ref.Val) ref.Val {
	if l.typ == nil {
		for n := l.node.First(); n.Valid(); n = n.Next() {
			l.frame.charge(1)
			if elem.Equal(l.frame.value(n, nil)) == types.True {
				return types.True
			}
		}
		return types.False
	}
	if types.IsUnknownOrError(elem) {
		return elem
	}
	var failed ref.Val
	for n := l.node.First(); n.Valid(); n = n.Next() {
		l.frame.charge(1)
		eq := l.frame.typed(n, l.typ.items).Equal(elem)
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
func (l *list) Size() ref.Val { return types.Int(l.node.Len()) }

// IsZeroValue implements traits.Zeroer; see object.
func (l *list) IsZeroValue() bool { return l.typ == nil && l.node.Len() == 0 }

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator {
	it := l.frame.items.take()
	*it = itemIterator{list: l, next: l.node.First()}
	return it
}

// Fold implements traits.Foldable, for comprehensions with two variables.
func (l *list) Fold(folder traits.Folder) {
	it := itemIterator{list: l, next: l.node.First()}
	for i := types.Int(0); it.next.Valid(); i++ {
		if !folder.FoldEntry(i, it.Next()) {
			return
		}
	}
}

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val {
	if l.unordered() {
		return l.kubernetes().Equal(plainVal(other))
	}
	o, ok := other.(traits.Lister)
	if !ok {
		if l.typ == nil {
			return types.False
		}
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	i := types.IntZero
	for n := l.node.First(); n.Valid(); n = n.Next() {
		l.frame.charge(1)
		v := l.frame.value(n, l.itemType())
		if l.typ == nil {
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
func (l *list) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.unordered() {
		return l.kubernetes().(traits.Adder).Add(plainVal(other))
	}
	if l.typ == nil {
		return types.NewRefValList(types.DefaultTypeAdapter, l.values()).(traits.Adder).Add(o.(ref.Val))
	}
	values := l.values()
	for it := o.Iterator(); it.HasNext() == types.True; {
		l.frame.charge(1)
		values = append(values, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func (l *list) values() []ref.Val {
	values := make([]ref.Val, 0, l.node.Len())
	for n := l.node.First(); n.Valid(); n = n.Next() {
		l.frame.charge(1)
		values = append(values, l.frame.value(n, l.itemType()))
	}
	return values
}

// unordered tells whether the order of items means nothing, as with x-kubernetes-list-type set and map.
func (l *list) unordered() bool { return l.typ != nil && l.typ.kind == kindUnorderedList }

// kubernetes is the list as Kubernetes' own value. How sets and lists that are maps are compared and added is too much to
// do twice, and too seldom asked for.
func (l *list) kubernetes() ref.Val {
	return common.UnstructuredToVal(l.Value(), l.typ.kubernetes())
}

// plainVal replaces a list that Kubernetes' values would have to look into.
func plainVal(v ref.Val) ref.Val {
	if l, ok := v.(*list); ok && l.unordered() {
		return l.kubernetes()
	}
	return v
}

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val: the decoded array.
func (l *list) Value() any {
	l.frame.charge(int64(len(l.node.Raw())) / bytesPerUnit)
	return native(l.node)
}

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.ListType, t.TypeName())
}

// ConvertToNative implements ref.Val.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).ConvertToNative(t)
}

// itemIterator goes through the items of a list.
type itemIterator struct {
	noValue
	list *list
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
	it.list.frame.charge(roundUnits)
	it.next = n.Next()
	return it.list.frame.value(n, it.list.itemType())
}
