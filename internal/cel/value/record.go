package value

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Record is a part of a request, or of anything else that Go holds, as a CEL map.
type Record struct {
	frame  *Arena
	of     any
	fields []Field
}

var _ traits.Mapper = (*Record)(nil)

func (f *Arena) NewRecord(r any, fields []Field) ref.Val {
	rec := f.records.Take()
	*rec = Record{frame: f, of: r, fields: fields}
	return rec
}

// Find implements traits.Mapper.
func (r *Record) Find(key ref.Val) (ref.Val, bool) {
	r.frame.Charge(1)
	name, ok := key.(types.String)
	if !ok {
		return types.ValOrErr(key, "unsupported map key type: %T", key), true
	}
	for i := range r.fields {
		if r.fields[i].Name == string(name) {
			v := r.fields[i].Get(r.frame, r.of)
			return v, v != nil
		}
	}
	return nil, false
}

// Get implements traits.Indexer.
func (r *Record) Get(key ref.Val) ref.Val {
	v, found := r.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (r *Record) Contains(key ref.Val) ref.Val {
	v, found := r.Find(key)
	if v != nil && types.IsError(v) {
		return v
	}
	return types.Bool(found)
}

func (r *Record) names() []string {
	var names []string
	for _, fd := range r.fields {
		if fd.Get(r.frame, r.of) != nil {
			names = append(names, fd.Name)
		}
	}
	return names
}

// Size implements traits.Sizer.
func (r *Record) Size() ref.Val { return types.Int(len(r.names())) }

// Iterator implements traits.Iterable.
func (r *Record) Iterator() traits.Iterator { return &NameIterator{Names: r.names()} }

// Equal implements ref.Val.
func (r *Record) Equal(other ref.Val) ref.Val { return EqualMaps(r, other) }

// Type implements ref.Val.
func (r *Record) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (r *Record) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (r *Record) ConvertToType(t ref.Type) ref.Val { return ConvertMap(r, t) }

// ConvertToNative implements ref.Val.
func (r *Record) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'request' to '%s'", t)
}

// A Field is a member of a record. Get returns nil if it is absent.
type Field struct {
	Name string
	Get  func(f *Arena, of any) ref.Val
}

func EqualMaps(a traits.Mapper, other ref.Val) ref.Val {
	b, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if a.Size() != b.Size() {
		return types.False
	}
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		x, _ := a.Find(key)
		y, found := b.Find(key)
		if !found {
			return types.False
		}
		if eq := x.Equal(y); eq != types.True {
			return eq
		}
	}
	return types.True
}

// ConvertMap is the conversion of every kind of map.
func ConvertMap(m ref.Val, t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.MapType, t.TypeName())
}

// NewText is a string that counts like one of a document.
func (f *Arena) NewText(s string) ref.Val {
	f.Charge(int64(len(s)) / BytesPerUnit)
	return f.NewString(s)
}

// NameIterator goes through names.
type NameIterator struct {
	noValue
	Names []string
}

// HasNext implements traits.Iterator.
func (it *NameIterator) HasNext() ref.Val { return types.Bool(len(it.Names) > 0) }

// Next implements traits.Iterator.
func (it *NameIterator) Next() ref.Val {
	if len(it.Names) == 0 {
		return nil
	}
	name := it.Names[0]
	it.Names = it.Names[1:]
	return types.String(name)
}
