package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/document"
)

// object is an object of a document as a CEL map. Without a type it behaves as cel-go's map of a decoded object does, with
// one as Kubernetes' unstructuredMap does; where the two differ, the code says so.
type object struct {
	frame *Frame
	node  document.Node
	typ   *Type
}

var (
	_ traits.Mapper   = (*object)(nil)
	_ traits.Foldable = (*object)(nil)
	_ traits.Zeroer   = (*object)(nil)
)

func (f *Frame) newObject(n document.Node, t *Type) ref.Val {
	o := f.objects.take()
	*o = object{frame: f, node: n, typ: t}
	return o
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	o.frame.charge(1)
	name, ok := key.(types.String)
	if !ok {
		if o.typ == nil {
			return nil, false
		}
		return types.MaybeNoSuchOverloadErr(key), true
	}
	if o.typ == nil {
		n, ok := o.node.Get(string(name))
		if !ok {
			return nil, false
		}
		return o.frame.value(n, nil), true
	}
	return o.findTyped(string(name))
}

func (o *object) findTyped(name string) (ref.Val, bool) {
	t := o.typ
	if t.members != nil {
		var ok bool
		if name, ok = t.unescape(name); !ok {
			return nil, false
		}
	}
	n, ok := o.node.Get(name)
	if !ok {
		return nil, false
	}
	if t.members != nil && n.Kind() == document.Null {
		return nil, false // a null member is taken for a missing one
	}
	m, ok := t.member(name)
	if !ok {
		return nil, false
	}
	return o.frame.typed(n, m), true
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if o.typ != nil && v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return types.Int(o.node.Len()) }

// IsZeroValue implements traits.Zeroer. Kubernetes' typed values do not implement it, so that no value of theirs is a zero value.
func (o *object) IsZeroValue() bool { return o.typ == nil && o.node.Len() == 0 }

// Iterator implements traits.Iterable: it goes through the keys in document order.
func (o *object) Iterator() traits.Iterator {
	it := o.frame.members.take()
	*it = memberIterator{object: o, next: o.node.First()}
	it.skip()
	return it
}

// Fold implements traits.Foldable, for comprehensions with two variables.
func (o *object) Fold(folder traits.Folder) {
	it := memberIterator{object: o, next: o.node.First()}
	it.skip()
	for it.next.Valid() {
		n := it.next
		key := it.Next()
		var v ref.Val
		if o.typ == nil {
			v = o.frame.value(n, nil)
		} else {
			v, _ = o.Find(key)
		}
		if !folder.FoldEntry(key, v) {
			return
		}
	}
}

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		if o.typ == nil {
			return types.False
		}
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != m.Size() {
		return types.False
	}
	if o.typ == nil {
		return o.equalPlain(m)
	}
	return o.equalTyped(m)
}

func (o *object) equalPlain(m traits.Mapper) ref.Val {
	for n := o.node.First(); n.Valid(); n = n.Next() {
		o.frame.charge(1)
		v, found := m.Find(o.frame.newString(n.Key()))
		if !found || types.Equal(o.frame.value(n, nil), v) == types.False {
			return types.False
		}
	}
	return types.True
}

func (o *object) equalTyped(m traits.Mapper) ref.Val {
	for n := o.node.First(); n.Valid(); n = n.Next() {
		o.frame.charge(1)
		name := n.Key()
		if _, ok := o.typ.member(name); ok {
			// Kubernetes looks members up by their JSON names here, though Find takes the names of expressions.
			key := o.frame.newString(name)
			v, found := o.Find(key)
			w, otherFound := m.Find(key)
			if found != otherFound {
				return types.False
			}
			if !found {
				continue
			}
			if eq := v.Equal(w); eq != types.True {
				return eq // false, or an error
			}
			continue
		}
		// A member that the schema does not name is compared as it is; one that only this object has makes no difference,
		// as in Kubernetes.
		p, ok := m.(*object)
		if !ok {
			return types.MaybeNoSuchOverloadErr(m.(ref.Val))
		}
		if w, ok := p.node.Get(name); ok && !o.frame.sameJSON(n, w) {
			return types.False
		}
	}
	return types.True
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val: the decoded object. Nothing on the usual ways asks for it.
func (o *object) Value() any {
	o.frame.charge(int64(len(o.node.Raw())) / bytesPerUnit)
	return native(o.node)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.MapType, t.TypeName())
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map || t.Kind() == reflect.Interface || o.typ == nil {
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, o.Value().(map[string]any)).ConvertToNative(t)
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", types.MapType, t)
}

// memberIterator goes through the keys of an object.
type memberIterator struct {
	noValue
	object *object
	next   document.Node
}

// HasNext implements traits.Iterator.
func (it *memberIterator) HasNext() ref.Val { return types.Bool(it.next.Valid()) }

// Next implements traits.Iterator.
func (it *memberIterator) Next() ref.Val {
	if !it.next.Valid() {
		return nil
	}
	o := it.object
	name := it.next.Key()
	o.frame.charge(roundUnits + int64(len(name))/bytesPerUnit)
	it.next = it.next.Next()
	it.skip()
	if o.typ != nil && o.typ.members != nil {
		if escaped, ok := apiservercel.Escape(name); ok {
			name = escaped
		}
	}
	return o.frame.newString(name)
}

// skip goes on to a member that expressions can see.
func (it *memberIterator) skip() {
	if it.object.typ == nil {
		return
	}
	for it.next.Valid() {
		if _, ok := it.object.typ.member(it.next.Key()); ok {
			return
		}
		it.object.frame.charge(1)
		it.next = it.next.Next()
	}
}

// noValue makes a ref.Val of an iterator, which no expression can get hold of.
type noValue struct{}

func (noValue) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion on iterators not supported")
}

func (noValue) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

func (noValue) Equal(ref.Val) ref.Val { return types.NewErr("no such overload") }

func (noValue) Type() ref.Type { return types.IteratorType }

func (noValue) Value() any { return nil }
