package plan

import (
	"math"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Val is a value as native plans compute with it. It is made to travel in registers: a string, a number or a place in
// a document costs no memory. What native plans do not know themselves is cel-go's own value.
type Val struct {
	head
	num  uint64         // of valBool, valInt, valUint and, as bits, valDouble; the length of a valString
	p, q unsafe.Pointer // see str, node, typ, list and ref; q is nil for plain JSON
}

// head has a name of its own because the compiler keeps no struct of more than four fields in registers.
type head struct {
	Kind  valKind
	index uint32 // of valNode
}

type valKind uint8

const (
	ValUnset  valKind = iota // no value: a variable that has not been computed yet
	ValNull                  //
	ValBool                  //
	ValInt                   //
	valUint                  //
	valDouble                //
	ValString                //
	valNode                  // any value of a document; its scalars are read when they are needed
	ValList                  // a list that the expression made
	valRef                   // any other value of cel-go's
	ValErr                   // an error of cel-go's
)

var (
	trueVal  = Val{head: head{Kind: ValBool}, num: 1}
	falseVal = Val{head: head{Kind: ValBool}}
	nullVal  = Val{head: head{Kind: ValNull}}
)

func boolVal(b bool) Val {
	if b {
		return trueVal
	}
	return falseVal
}

func intVal(i int64) Val { return Val{head: head{Kind: ValInt}, num: uint64(i)} }

func uintVal(u uint64) Val { return Val{head: head{Kind: valUint}, num: u} }

func doubleVal(d float64) Val { return Val{head: head{Kind: valDouble}, num: math.Float64bits(d)} }

func stringVal(s string) Val {
	return Val{head: head{Kind: ValString}, num: uint64(len(s)), p: unsafe.Pointer(unsafe.StringData(s))}
}

func listVal(l *built) Val { return Val{head: head{Kind: ValList}, p: unsafe.Pointer(l)} }

func ErrVal(err ref.Val) Val { return boxed(ValErr, err) }

func refVal(v ref.Val) Val { return boxed(valRef, v) }

// boxed keeps a value of cel-go's as the two words that an interface value is.
func boxed(kind valKind, v ref.Val) Val {
	tab, data := value.Words(v)
	return Val{head: head{Kind: kind}, p: tab, q: data}
}

func nodeVal(n document.Node, t *value.Type) Val {
	return Val{head: head{valNode, n.Index()}, p: unsafe.Pointer(n.Document()), q: unsafe.Pointer(t)}
}

func (v Val) Bool() bool { return v.num != 0 }

func (v Val) Int() int64 { return int64(v.num) }

func (v Val) double() float64 { return math.Float64frombits(v.num) }

func (v Val) Str() string { return unsafe.String((*byte)(v.p), int(v.num)) }

func (v Val) node() document.Node { return (*document.Document)(v.p).Node(v.index) }

func (v Val) List() *built { return (*built)(v.p) }

func (v Val) Ref() ref.Val { return value.Joined(v.p, v.q) }

// typ is how a node is seen, nil as plain JSON.
func (v Val) typ() *value.Type {
	if v.Kind != valNode {
		return nil
	}
	return (*value.Type)(v.q)
}

// optional is the value as an optional one, if it is that.
func (v Val) optional() (*types.Optional, bool) {
	if v.Kind != valRef {
		return nil, false
	}
	o, ok := v.Ref().(*types.Optional)
	return o, ok
}

// isArray reports whether the value is an array of a document that is seen as a list.
func (v Val) isArray() bool { return v.Kind == valNode && value.IsList(v.node(), v.typ()) }

// isMembers reports whether the value is an object of a document that is seen as a map.
func (v Val) isMembers() bool { return v.Kind == valNode && value.IsObject(v.node(), v.typ()) }

// Scalar reads the scalar that a node is; containers remain nodes. What the node's type does not
// allow becomes an error.
func (f *Machine) Scalar(v Val) Val {
	if v.Kind != valNode {
		return v
	}
	n, t := v.node(), v.typ()
	if t != nil {
		return f.typedScalar(n, t, v)
	}
	switch n.Kind() {
	case document.String:
		return f.text(n)
	case document.Number:
		if n.IsInteger() {
			if i, ok := n.Int64(); ok {
				return intVal(i)
			}
		} else if d, ok := n.Float64(); ok {
			return doubleVal(d)
		}
		return ErrVal(f.Arena.Number(n))
	case document.Bool:
		return boolVal(n.Bool())
	case document.Object, document.Array:
		return v
	}
	return nullVal
}

func (f *Machine) text(n document.Node) Val {
	s := n.Str()
	f.Arena.Charge(int64(len(s)) / value.BytesPerUnit)
	return stringVal(s)
}

func (f *Machine) typedScalar(n document.Node, t *value.Type, v Val) Val {
	switch t.Kind {
	case value.KindString:
		if n.Kind() == document.String {
			return f.text(n)
		}
	case value.KindInteger:
		if i, ok := n.Int64(); ok {
			return intVal(i)
		}
	case value.KindNumber:
		if d, ok := n.Float64(); ok && d != 0 {
			return doubleVal(d)
		}
	case value.KindBool:
		if n.Kind() == document.Bool {
			return boolVal(n.Bool())
		}
	case value.KindObject:
		if n.Kind() == document.Object {
			return v
		}
	case value.KindList, value.KindUnorderedList:
		if n.Kind() == document.Array {
			return v
		}
	}
	return f.Of(f.Arena.Typed(n, t))
}

// Ref is the value as cel-go has it.
func (f *Machine) Ref(v Val) ref.Val {
	switch v.Kind {
	case ValBool:
		return types.Bool(v.Bool())
	case ValInt:
		f.use()
		return f.Arena.NewInt(v.Int())
	case valUint:
		return types.Uint(v.num)
	case valDouble:
		f.use()
		return f.Arena.NewDouble(v.double())
	case ValString:
		f.use()
		return f.Arena.NewString(v.Str())
	case valNode:
		f.use()
		return f.Arena.Value(v.node(), v.typ())
	case ValList:
		return v.List().ref(f)
	case valRef, ValErr:
		return v.Ref()
	}
	return types.NullValue
}

// Of is a value of cel-go's as native plans have it.
func (f *Machine) Of(v ref.Val) Val {
	switch v := v.(type) {
	case types.String:
		return stringVal(string(v))
	case types.Bool:
		return boolVal(bool(v))
	case types.Int:
		return intVal(int64(v))
	case types.Double:
		return doubleVal(float64(v))
	case types.Uint:
		return uintVal(uint64(v))
	case types.Null:
		return nullVal
	case *value.Map:
		return nodeVal(v.Node, v.Typ)
	case *value.List:
		return nodeVal(v.Node, v.Typ)
	case *types.Err, *types.Unknown:
		return ErrVal(v)
	}
	return refVal(v)
}

// literal is the value as cel-go has it, in memory of its own.
func (v Val) literal() ref.Val {
	switch v.Kind {
	case ValBool:
		return types.Bool(v.Bool())
	case ValInt:
		return types.Int(v.Int())
	case valUint:
		return types.Uint(v.num)
	case valDouble:
		return types.Double(v.double())
	case ValString:
		return types.String(v.Str())
	case ValList:
		return v.List().Made
	case valRef, ValErr:
		return v.Ref()
	}
	return types.NullValue
}
