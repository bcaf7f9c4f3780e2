package plan

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// sound is the value, or the error that reading it is.
func (f *Machine) sound(v Val) (Val, chainResult) {
	if v.Kind == valNode {
		switch t := v.typ(); {
		case t != nil:
			if err := f.Scalar(v); err.Kind == ValErr {
				return err, failed
			}
		case v.node().Kind() == document.Number && v.node().IsInteger():
			if _, ok := v.node().Int64(); !ok {
				return f.Scalar(v), failed
			}
		}
	}
	return v, present
}

// qualify is a member or an item of a value; soft says that it may be missing. It does what cel-go's refQualify does.
func (f *Machine) qualify(v, key Val, soft bool) (Val, chainResult) {
	switch key.Kind {
	case ValString, ValInt, valUint, valDouble, ValBool:
	default:
		if v, how := f.sound(v); how == failed {
			return v, failed
		}
		return ErrVal(types.NewErr("invalid qualifier type: %T", f.Ref(key))), failed
	}
	switch v.Kind {
	case valNode:
		switch {
		case v.isMembers():
			return f.member(v.node(), v.typ(), key, soft)
		case v.isArray():
			return f.item(v, key, soft)
		}
		if v = f.Scalar(v); v.Kind == ValErr {
			return v, failed
		}
	case ValList:
		i, err := types.IndexOrError(f.index(key))
		if err != nil {
			return ErrVal(types.WrapErr(err)), failed
		}
		if vals := v.List().vals; i >= 0 && i < len(vals) {
			return vals[i], present
		}
		return f.missing("index out of bounds", key, soft)
	case ValErr:
		return v, failed
	}
	if v.Kind == valRef {
		return f.qualifyRef(v.Ref(), key, soft)
	}
	return f.missing("no such key", key, soft)
}

// fieldOf is a field of an object of a type that reads its fields itself. It does what cel-go's fieldQualifier does.
func (f *Machine) fieldOf(l *link, v Val, soft bool) (Val, chainResult) {
	object := f.Ref(v).Value()
	if soft && !l.field.IsSet(object) {
		return Val{}, none
	}
	found, err := l.field.GetFrom(object)
	if err != nil {
		return ErrVal(types.WrapErr(err)), failed
	}
	return f.Of(l.adapter.NativeToValue(found)), present
}

// missing is the value of a chain whose member is missing.
func (f *Machine) missing(what string, key Val, soft bool) (Val, chainResult) {
	if soft {
		return Val{}, none
	}
	return ErrVal(types.NewErr("%s: %v", what, f.Ref(key))), failed
}

func (f *Machine) member(n document.Node, t *value.Type, key Val, soft bool) (Val, chainResult) {
	if key.Kind != ValString {
		if t != nil {
			return ErrVal(types.NoSuchOverloadErr()), failed
		}
		return f.missing("no such key", key, soft)
	}
	name, m := key.Str(), (*value.Type)(nil)
	ok := true
	if t != nil && t.Members != nil {
		name, ok = t.Unescape(name)
	}
	var child document.Node
	if ok {
		child, ok = n.Get(name)
	}
	if ok && t != nil {
		m, ok = t.Member(name)
		ok = ok && (t.Members == nil || child.Kind() != document.Null)
	}
	if !ok {
		return f.missing("no such key", key, soft)
	}
	return nodeVal(child, m), present
}

// index is a key as cel-go has it, in order to be an index.
func (f *Machine) index(key Val) ref.Val {
	if key.Kind == ValInt && key.num < 256 {
		return types.Int(key.num)
	}
	return f.Ref(key)
}

func (f *Machine) item(v, key Val, soft bool) (Val, chainResult) {
	n, t := v.node(), v.typ()
	i := int(key.num)
	if key.Kind != ValInt {
		var err error
		if i, err = types.IndexOrError(f.index(key)); err != nil {
			return ErrVal(types.WrapErr(err)), failed
		}
	}
	if i < 0 || i >= n.Len() {
		return f.missing("index out of bounds", key, soft)
	}
	if t == nil {
		return nodeVal(f.indexed(n).Nth(i), nil), present
	}
	if key.Kind != ValInt {
		return ErrVal(types.NewErr("unsupported index: %v", f.Ref(key))), failed
	}
	return nodeVal(f.indexed(n).Nth(i), t.Items), present
}

// indexed is the list of the array, which remembers the last position that was read.
func (f *Machine) indexed(n document.Node) *value.List {
	l := &f.recent[n.Index()%uint32(len(f.recent))]
	if l.Node != n {
		f.use()
		*l = value.List{Arena: &f.Arena, Node: n}
	}
	return l
}

// qualifyRef is qualify for a value of cel-go's.
func (f *Machine) qualifyRef(v ref.Val, key Val, soft bool) (Val, chainResult) {
	k := f.Ref(key)
	switch v := v.(type) {
	case traits.Mapper:
		found, ok := v.Find(k)
		if found != nil && types.IsError(found) {
			return ErrVal(found), failed
		}
		if ok {
			return f.Of(found), present
		}
		return f.missing("no such key", key, soft)
	case traits.Lister:
		i, err := types.IndexOrError(k)
		if err != nil {
			return ErrVal(types.WrapErr(err)), failed
		}
		if size, ok := v.Size().(types.Int); i < 0 || !ok || types.Int(i) >= size {
			return f.missing("index out of bounds", key, soft)
		}
		return f.Of(v.Get(k)), present
	case traits.Indexer:
		if tester, ok := v.(traits.FieldTester); ok && soft {
			is := tester.IsSet(k)
			if types.IsError(is) {
				return ErrVal(is), failed
			}
			if is == types.False {
				return Val{}, none
			}
		}
		found := v.Get(k)
		if types.IsError(found) {
			return ErrVal(found), failed
		}
		return f.Of(found), present
	}
	return f.missing("no such key", key, soft)
}

// variable is the value of a variable that is not simply a node.
func (f *Machine) variable(s value.Slot) Val {
	sl := &f.run.nodes.Slots[s]
	switch s {
	case value.Self, value.OldSelf:
		optional := s == value.OldSelf && f.run.optionalOld
		switch {
		case sl.Node.Valid() && optional:
			return refVal(types.OptionalOf(f.Ref(nodeVal(sl.Node, sl.Typ))))
		case optional:
			return refVal(types.OptionalNone)
		case !sl.Node.Valid():
			return ErrVal(types.WrapErr(fmt.Errorf("no such attribute(s): %s", slotNames[s])))
		}
	}
	if !sl.Node.Valid() {
		return nullVal
	}
	return nodeVal(sl.Node, sl.Typ)
}
