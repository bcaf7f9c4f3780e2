package value

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Map is an object of a document as a CEL map. Without a type it behaves as cel-go's map of a
// decoded object does, with one as Kubernetes' unstructuredMap does; the code says so if the two
// differ.
type Map struct {
	frame *Arena
	Node  document.Node
	Typ   *Type
}

var (
	_ traits.Mapper   = (*Map)(nil)
	_ traits.Foldable = (*Map)(nil)
	_ traits.Zeroer   = (*Map)(nil)
)

func (f *Arena) newObject(n document.Node, t *Type) ref.Val {
	o := f.objects.Take()
	*o = Map{frame: f, Node: n, Typ: t}
	return o
}

// Find implements traits.Mapper.
func (o *Map) Find(key ref.Val) (ref.Val, bool) {
	o.frame.Charge(1)
	name, ok := key.(types.String)
	if !ok {
		if o.Typ == nil {
			return nil, false
		}
		return types.MaybeNoSuchOverloadErr(key), true
	}
	if o.Typ == nil {
		n, ok := o.Node.Get(string(name))
		if !ok {
			return nil, false
		}
		return o.frame.Value(n, nil), true
	}
	return o.findTyped(string(name))
}

func (o *Map) findTyped(name string) (ref.Val, bool) {
	t := o.Typ
	if t.Members != nil {
		var ok bool
		if name, ok = t.Unescape(name); !ok {
			return nil, false
		}
	}
	n, ok := o.Node.Get(name)
	if !ok {
		return nil, false
	}
	if t.Members != nil && n.Kind() == document.Null {
		return nil, false // a null member is taken for a missing one
	}
	m, ok := t.Member(name)
	if !ok {
		return nil, false
	}
	return o.frame.Typed(n, m), true
}

// Get implements traits.Indexer.
func (o *Map) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (o *Map) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if o.Typ != nil && v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (o *Map) Size() ref.Val { return types.Int(o.Node.Len()) }

// IsZeroValue implements traits.Zeroer. Kubernetes' typed values do not implement it, so that no value of theirs is a
// zero value.
func (o *Map) IsZeroValue() bool { return o.Typ == nil && o.Node.Len() == 0 }

// Iterator implements traits.Iterable: it goes through the keys in document order.
func (o *Map) Iterator() traits.Iterator {
	it := o.frame.members.Take()
	*it = memberIterator{object: o, next: o.Node.First()}
	it.skip()
	return it
}

// Fold implements traits.Foldable, for comprehensions with two variables.
func (o *Map) Fold(folder traits.Folder) {
	it := memberIterator{object: o, next: o.Node.First()}
	it.skip()
	for it.next.Valid() {
		n := it.next
		key := it.Next()
		var v ref.Val
		if o.Typ == nil {
			v = o.frame.Value(n, nil)
		} else {
			v, _ = o.Find(key)
		}
		if !folder.FoldEntry(key, v) {
			return
		}
	}
}

// Equal implements ref.Val.
func (o *Map) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		if o.Typ == nil {
			return types.False
		}
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != m.Size() {
		return types.False
	}
	if o.Typ == nil {
		return o.equalPlain(m)
	}
	return o.equalTyped(m)
}

func (o *Map) equalPlain(m traits.Mapper) ref.Val {
	for n := o.Node.First(); n.Valid(); n = n.Next() {
		o.frame.Charge(1)
		v, found := m.Find(o.frame.NewString(n.Key()))
		if !found || types.Equal(o.frame.Value(n, nil), v) == types.False {
			return types.False
		}
	}
	return types.True
}

func (o *Map) equalTyped(m traits.Mapper) ref.Val {
	for n := o.Node.First(); n.Valid(); n = n.Next() {
		o.frame.Charge(1)
		name := n.Key()
		if _, ok := o.Typ.Member(name); ok {
			// Kubernetes looks members up by their JSON names here, though Find takes the names of expressions.
			key := o.frame.NewString(name)
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
		// A member that the schema does not name is compared as it is; one that only this object has makes no
		// difference, as in Kubernetes.
		p, ok := m.(*Map)
		if !ok {
			return types.MaybeNoSuchOverloadErr(m.(ref.Val))
		}
		if w, ok := p.Node.Get(name); ok && !o.frame.sameJSON(n, w) {
			return types.False
		}
	}
	return types.True
}

// Type implements ref.Val.
func (o *Map) Type() ref.Type { return types.MapType }

// Value implements ref.Val: the decoded object. Nothing on the usual ways asks for it.
func (o *Map) Value() any {
	o.frame.Charge(int64(len(o.Node.Raw())) / BytesPerUnit)
	return native(o.Node)
}

// ConvertToType implements ref.Val.
func (o *Map) ConvertToType(t ref.Type) ref.Val { return ConvertMap(o, t) }

// ConvertToNative implements ref.Val.
func (o *Map) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map || t.Kind() == reflect.Interface || o.Typ == nil {
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, o.Value().(map[string]any)).ConvertToNative(t)
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", types.MapType, t)
}

// memberIterator goes through the keys of an object.
type memberIterator struct {
	noValue
	object *Map
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
	o.frame.Charge(roundUnits + int64(len(name))/BytesPerUnit)
	it.next = it.next.Next()
	it.skip()
	if o.Typ != nil && o.Typ.Members != nil {
		if escaped, ok := apiservercel.Escape(name); ok {
			name = escaped
		}
	}
	return o.frame.NewString(name)
}

// skip goes on to a member that expressions can see.
func (it *memberIterator) skip() {
	if it.object.Typ == nil {
		return
	}
	for it.next.Valid() {
		if _, ok := it.object.Typ.Member(it.next.Key()); ok {
			return
		}
		it.object.frame.Charge(1)
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

// PlainName is the JSON name of a member by the name that expressions use.
func (o *Map) PlainName(name string) string {
	if o.Typ != nil && o.Typ.Members != nil {
		if plain, ok := o.Typ.Unescape(name); ok {
			return plain
		}
	}
	return name
}
