package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/document"
)

// sound is the value, or the error that reading it is.
func (f *Frame) sound(v val) (val, reach) {
	if v.kind == valNode {
		switch t := v.typ(); {
		case t != nil:
			if err := f.settled(v); err.kind == valErr {
				return err, failed
			}
		case v.node().Kind() == document.Number && v.node().IsInteger():
			if _, ok := v.node().Int64(); !ok {
				return f.settled(v), failed
			}
		}
	}
	return v, present
}

// qualify is a member or an item of a value; soft says that it may be missing. It does what cel-go's refQualify does.
func (f *Frame) qualify(v, key val, soft bool) (val, reach) {
	switch key.kind {
	case valString, valInt, valUint, valDouble, valBool:
	default:
		if v, how := f.sound(v); how == failed {
			return v, failed
		}
		return errVal(types.NewErr("invalid qualifier type: %T", f.ref(key))), failed
	}
	switch v.kind {
	case valNode:
		switch {
		case v.isMembers():
			return f.member(v.node(), v.typ(), key, soft)
		case v.isArray():
			return f.item(v, key, soft)
		}
		if v = f.settled(v); v.kind == valErr {
			return v, failed
		}
	case valList:
		i, err := types.IndexOrError(f.index(key))
		if err != nil {
			return errVal(types.WrapErr(err)), failed
		}
		if vals := v.list().vals; i >= 0 && i < len(vals) {
			return vals[i], present
		}
		return f.missing("index out of bounds", key, soft)
	case valErr:
		return v, failed
	}
	if v.kind == valRef {
		return f.qualifyRef(v.ref(), key, soft)
	}
	return f.missing("no such key", key, soft)
}

// fieldOf is a field of an object of a type that reads its fields itself. It does what cel-go's fieldQualifier does.
func (f *Frame) fieldOf(l *link, v val, soft bool) (val, reach) {
	object := f.ref(v).Value()
	if soft && !l.field.IsSet(object) {
		return val{}, none
	}
	found, err := l.field.GetFrom(object)
	if err != nil {
		return errVal(types.WrapErr(err)), failed
	}
	return f.of(l.adapter.NativeToValue(found)), present
}

// missing is what a chain is without a member.
func (f *Frame) missing(what string, key val, soft bool) (val, reach) {
	if soft {
		return val{}, none
	}
	return errVal(types.NewErr("%s: %v", what, f.ref(key))), failed
}

func (f *Frame) member(n document.Node, t *Type, key val, soft bool) (val, reach) {
	if key.kind != valString {
		if t != nil {
			return errVal(types.NoSuchOverloadErr()), failed
		}
		return f.missing("no such key", key, soft)
	}
	name, m := key.str(), (*Type)(nil)
	ok := true
	if t != nil && t.members != nil {
		name, ok = t.unescape(name)
	}
	var child document.Node
	if ok {
		child, ok = n.Get(name)
	}
	if ok && t != nil {
		m, ok = t.member(name)
		ok = ok && (t.members == nil || child.Kind() != document.Null)
	}
	if !ok {
		return f.missing("no such key", key, soft)
	}
	return nodeVal(child, m), present
}

// index is a key as cel-go has it, in order to be an index.
func (f *Frame) index(key val) ref.Val {
	if key.kind == valInt && key.num < 256 {
		return types.Int(key.num)
	}
	return f.ref(key)
}

func (f *Frame) item(v, key val, soft bool) (val, reach) {
	n, t := v.node(), v.typ()
	i := int(key.num)
	if key.kind != valInt {
		var err error
		if i, err = types.IndexOrError(f.index(key)); err != nil {
			return errVal(types.WrapErr(err)), failed
		}
	}
	if i < 0 || i >= n.Len() {
		return f.missing("index out of bounds", key, soft)
	}
	if t == nil {
		return nodeVal(f.indexed(n).nth(i), nil), present
	}
	if key.kind != valInt {
		return errVal(types.NewErr("unsupported index: %v", f.ref(key))), failed
	}
	return nodeVal(f.indexed(n).nth(i), t.items), present
}

// indexed is the list of the array, which remembers where it was read last.
func (f *Frame) indexed(n document.Node) *list {
	l := &f.recent[n.Index()%uint32(len(f.recent))]
	if l.node != n {
		f.use()
		*l = list{frame: f, node: n}
	}
	return l
}

// qualifyRef is qualify for a value of cel-go's.
func (f *Frame) qualifyRef(v ref.Val, key val, soft bool) (val, reach) {
	k := f.ref(key)
	switch v := v.(type) {
	case traits.Mapper:
		found, ok := v.Find(k)
		if found != nil && types.IsError(found) {
			return errVal(found), failed
		}
		if ok {
			return f.of(found), present
		}
		return f.missing("no such key", key, soft)
	case traits.Lister:
		i, err := types.IndexOrError(k)
		if err != nil {
			return errVal(types.WrapErr(err)), failed
		}
		if size, ok := v.Size().(types.Int); i < 0 || !ok || types.Int(i) >= size {
			return f.missing("index out of bounds", key, soft)
		}
		return f.of(v.Get(k)), present
	case traits.Indexer:
		if tester, ok := v.(traits.FieldTester); ok && soft {
			is := tester.IsSet(k)
			if types.IsError(is) {
				return errVal(is), failed
			}
			if is == types.False {
				return val{}, none
			}
		}
		found := v.Get(k)
		if types.IsError(found) {
			return errVal(found), failed
		}
		return f.of(found), present
	}
	return f.missing("no such key", key, soft)
}

// variable is the value of a variable that is not simply a node.
func (f *Frame) variable(s Slot) val {
	sl := &f.vars.slots[s]
	switch s {
	case Self, OldSelf:
		optional := s == OldSelf && f.program.optionalOld
		switch {
		case sl.node.Valid() && optional:
			return refVal(types.OptionalOf(f.ref(nodeVal(sl.node, sl.typ))))
		case optional:
			return refVal(types.OptionalNone)
		case !sl.node.Valid():
			return errVal(types.WrapErr(fmt.Errorf("no such attribute(s): %s", slotNames[s])))
		}
	}
	if !sl.node.Valid() {
		return nullVal
	}
	return nodeVal(sl.node, sl.typ)
}
