package value

import (
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/admission-gateway/gateway/internal/document"
)

// BytesPerUnit is how many bytes of a string cost a unit, Kubernetes' factor for one pass over a string.
const BytesPerUnit = 10

// Value is the node as expressions see it. Strings are counted here, for whatever is then done with them once.
func (f *Arena) Value(n document.Node, t *Type) ref.Val {
	if t != nil {
		return f.Typed(n, t)
	}
	switch n.Kind() {
	case document.Bool:
		return types.Bool(n.Bool())
	case document.Number:
		return f.Number(n)
	case document.String:
		return f.string(n)
	case document.Object:
		return f.newObject(n, nil)
	case document.Array:
		return f.newList(n, nil)
	default:
		return types.NullValue
	}
}

// Number is an int for a number that is spelled as an integer and a double for any other. An integer beyond int64 is an
// error: Kubernetes would make it a double and round it.
func (f *Arena) Number(n document.Node) ref.Val {
	if !n.IsInteger() {
		d, ok := n.Float64()
		if !ok {
			return types.NewErr("invalid data, number '%s' is out of range", n.Raw())
		}
		return f.NewDouble(d)
	}
	i, ok := n.Int64()
	if !ok {
		return types.NewErr("invalid data, integer '%s' is beyond 64 bits", n.Raw())
	}
	return f.NewInt(i)
}

func (f *Arena) string(n document.Node) ref.Val {
	s := n.Str()
	f.Charge(int64(len(s)) / BytesPerUnit)
	return f.NewString(s)
}

// Typed is the node as the rules of a schema see it.
func (f *Arena) Typed(n document.Node, t *Type) ref.Val {
	kind := n.Kind()
	if kind == document.Null {
		if t.nullable {
			return types.NullValue
		}
		return types.NewErr("invalid data, got null for schema with nullable=false")
	}
	switch t.Kind {
	case KindObject:
		if kind == document.Object {
			return f.newObject(n, t)
		}
		return types.NewErr("invalid data, expected a map for the provided schema with type=object")
	case KindList, KindUnorderedList:
		if kind == document.Array {
			return f.newList(n, t)
		}
		return types.NewErr("invalid data, expected an array for the provided schema with type=array")
	case KindString:
		if kind == document.String {
			return f.string(n)
		}
	case KindDuration, kindDate, KindDateTime, KindBytes:
		if kind == document.String {
			s := n.Str()
			f.Charge(int64(len(s)) / BytesPerUnit)
			return convert(s, t.Kind)
		}
	case KindNumber:
		if kind == document.Number {
			if d, ok := n.Float64(); ok {
				if d == 0 && n.IsInteger() {
					d = 0 // -0 is an integer before it is a double
				}
				return f.NewDouble(d)
			}
		}
		return types.NewErr("invalid data, expected float, got %s", n.Kind())
	case KindInteger:
		// The schema takes 1.0 and 1e3 for integers and so do its rules.
		if kind == document.Number {
			if i, ok := n.Int64(); ok {
				return f.NewInt(i)
			}
		}
		return types.NewErr("invalid data, expected int, got %s", n.Kind())
	case KindBool:
		if kind == document.Bool {
			return types.Bool(n.Bool())
		}
		return types.NewErr("invalid data, expected bool, got %s", n.Kind())
	case kindIntOrString:
		switch kind {
		case document.String:
			return f.string(n)
		case document.Number:
			if i, ok := n.Int64(); ok {
				return f.NewInt(i)
			}
		}
		return types.NewErr("invalid data, expected XIntOrString value to be either a string or integer")
	case kindPreserved:
		return &preserved{frame: f, node: n}
	default:
		return types.NewErr("invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true")
	}
	return types.NewErr("invalid data, expected string, got %s", n.Kind())
}

// convert reads a string of a format that has a type of its own in expressions.
func convert(s string, k TypeKind) ref.Val {
	switch k {
	case KindDuration:
		d, err := strfmt.ParseDuration(s)
		if err != nil {
			return types.NewErr("Invalid duration %s: %v", s, err)
		}
		return types.Duration{Duration: d}
	case kindDate:
		d, err := time.Parse(strfmt.RFC3339FullDate, s)
		if err != nil {
			return types.NewErr("Invalid date formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: d}
	case KindDateTime:
		d, err := strfmt.ParseDateTime(s)
		if err != nil {
			return types.NewErr("Invalid date-time formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: time.Time(d)}
	default:
		var b strfmt.Base64
		if err := b.UnmarshalText([]byte(s)); err != nil {
			return types.NewErr("Invalid byte formatted string %s: %v", s, err)
		}
		return types.Bytes(b)
	}
}

// IsObject reports whether the node is an object that expressions can see as one.
func IsObject(n document.Node, t *Type) bool {
	return n.Kind() == document.Object && (t == nil || t.Kind == KindObject)
}

func IsList(n document.Node, t *Type) bool {
	return n.Kind() == document.Array && (t == nil || t.Kind == KindList || t.Kind == KindUnorderedList)
}

// preserved is a value that the schema says nothing about. Rules cannot look into it; they meet it only when they
// compare an object that holds it.
type preserved struct {
	frame *Arena
	node  document.Node
}

func (p *preserved) ConvertToNative(t reflect.Type) (any, error) {
	return nil, types.NewErr("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t).(*types.Err)
}

func (p *preserved) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t.TypeName())
}

func (p *preserved) Equal(other ref.Val) ref.Val {
	o, ok := other.(*preserved)
	return types.Bool(ok && p.frame.sameJSON(p.node, o.node))
}

func (p *preserved) Type() ref.Type { return types.UnknownType }

func (p *preserved) Value() any { return native(p.node) }

// sameJSON reports whether two nodes decode to the same value. An integer and a double are never
// the same.
func (f *Arena) sameJSON(a, b document.Node) bool {
	f.Charge(1)
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case document.Bool:
		return a.Bool() == b.Bool()
	case document.Number:
		if a.IsInteger() != b.IsInteger() {
			return false
		}
		if x, ok := a.Int64(); ok {
			y, ok := b.Int64()
			return ok && x == y
		}
		x, _ := a.Float64()
		y, _ := b.Float64()
		return x == y
	case document.String:
		s := a.Str()
		f.Charge(int64(len(s)) / BytesPerUnit)
		return s == b.Str()
	case document.Array:
		if a.Len() != b.Len() {
			return false
		}
		x, y := a.First(), b.First()
		for x.Valid() {
			if !f.sameJSON(x, y) {
				return false
			}
			x, y = x.Next(), y.Next()
		}
		return true
	case document.Object:
		if a.Len() != b.Len() {
			return false
		}
		for x := a.First(); x.Valid(); x = x.Next() {
			y, ok := b.Get(x.Key())
			if !ok || !f.sameJSON(x, y) {
				return false
			}
		}
		return true
	}
	return true
}

// native is the node as encoding/json would decode it with exact integers, for the few functions of libraries that know
// no lazy values.
func native(n document.Node) any {
	switch n.Kind() {
	case document.Bool:
		return n.Bool()
	case document.Number:
		if i, ok := n.Int64(); ok && n.IsInteger() {
			return i
		}
		d, _ := n.Float64()
		return d
	case document.String:
		return n.Str()
	case document.Array:
		l := make([]any, 0, n.Len())
		for e := n.First(); e.Valid(); e = e.Next() {
			l = append(l, native(e))
		}
		return l
	case document.Object:
		m := make(map[string]any, n.Len())
		for e := n.First(); e.Valid(); e = e.Next() {
			m[e.Key()] = native(e)
		}
		return m
	}
	return nil
}
