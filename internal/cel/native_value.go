package cel

import (
	"math"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/document"
)

// A val is a value as native plans compute with it. It is made to travel in registers: a string, a number or a place in a
// document costs no memory. What native plans do not know themselves is cel-go's own value.
type val struct {
	head
	num  uint64         // of valBool, valInt, valUint and, as bits, valDouble; the length of a valString
	p, q unsafe.Pointer // see str, node, typ, list and ref; q is nil for plain JSON
}

// head has a name of its own because the compiler keeps no struct of more than four fields in registers.
type head struct {
	kind  valKind
	index uint32 // of valNode
}

type valKind uint8

const (
	valUnset  valKind = iota // no value: a variable that has not been computed yet
	valNull                  //
	valBool                  //
	valInt                   //
	valUint                  //
	valDouble                //
	valString                //
	valNode                  // any value of a document; its scalars are read when somebody needs them
	valList                  // a list that the expression made
	valRef                   // any other value of cel-go's
	valErr                   // an error of cel-go's
)

var (
	trueVal  = val{head: head{kind: valBool}, num: 1}
	falseVal = val{head: head{kind: valBool}}
	nullVal  = val{head: head{kind: valNull}}
)

func boolVal(b bool) val {
	if b {
		return trueVal
	}
	return falseVal
}

func intVal(i int64) val { return val{head: head{kind: valInt}, num: uint64(i)} }

func uintVal(u uint64) val { return val{head: head{kind: valUint}, num: u} }

func doubleVal(d float64) val { return val{head: head{kind: valDouble}, num: math.Float64bits(d)} }

func stringVal(s string) val {
	return val{head: head{kind: valString}, num: uint64(len(s)), p: unsafe.Pointer(unsafe.StringData(s))}
}

func listVal(l *built) val { return val{head: head{kind: valList}, p: unsafe.Pointer(l)} }

func errVal(err ref.Val) val { return boxed(valErr, err) }

func refVal(v ref.Val) val { return boxed(valRef, v) }

// boxed keeps a value of cel-go's as the two words that an interface value is.
func boxed(kind valKind, v ref.Val) val {
	s := (*shape)(unsafe.Pointer(&v))
	return val{head: head{kind: kind}, p: s.tab, q: s.data}
}

func nodeVal(n document.Node, t *Type) val {
	return val{head: head{valNode, n.Index()}, p: unsafe.Pointer(n.Document()), q: unsafe.Pointer(t)}
}

func (v val) bool() bool { return v.num != 0 }

func (v val) int() int64 { return int64(v.num) }

func (v val) double() float64 { return math.Float64frombits(v.num) }

func (v val) str() string { return unsafe.String((*byte)(v.p), int(v.num)) }

func (v val) node() document.Node { return (*document.Document)(v.p).Node(v.index) }

func (v val) list() *built { return (*built)(v.p) }

func (v val) ref() (r ref.Val) {
	*(*shape)(unsafe.Pointer(&r)) = shape{v.p, v.q}
	return r
}

// typ is how a node is seen, nil as plain JSON.
func (v val) typ() *Type {
	if v.kind != valNode {
		return nil
	}
	return (*Type)(v.q)
}

// optional is the value as an optional one, if it is that.
func (v val) optional() (*types.Optional, bool) {
	if v.kind != valRef {
		return nil, false
	}
	o, ok := v.ref().(*types.Optional)
	return o, ok
}

// isArray tells whether the value is an array of a document that is seen as a list.
func (v val) isArray() bool { return v.kind == valNode && isList(v.node(), v.typ()) }

// isMembers tells whether the value is an object of a document that is seen as a map.
func (v val) isMembers() bool { return v.kind == valNode && isObject(v.node(), v.typ()) }

// settle reads the scalar that a node is; containers remain nodes. What the node's type does not allow becomes an error.
func (f *Frame) settled(v val) val {
	if v.kind != valNode {
		return v
	}
	n, t := v.node(), v.typ()
	if t != nil {
		return f.settledTyped(n, t, v)
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
		return errVal(f.number(n))
	case document.Bool:
		return boolVal(n.Bool())
	case document.Object, document.Array:
		return v
	}
	return nullVal
}

func (f *Frame) text(n document.Node) val {
	s := n.Str()
	f.charge(int64(len(s)) / bytesPerUnit)
	return stringVal(s)
}

func (f *Frame) settledTyped(n document.Node, t *Type, v val) val {
	switch t.kind {
	case kindString:
		if n.Kind() == document.String {
			return f.text(n)
		}
	case kindInteger:
		if i, ok := n.Int64(); ok {
			return intVal(i)
		}
	case kindNumber:
		if d, ok := n.Float64(); ok && d != 0 {
			return doubleVal(d)
		}
	case kindBool:
		if n.Kind() == document.Bool {
			return boolVal(n.Bool())
		}
	case kindObject:
		if n.Kind() == document.Object {
			return v
		}
	case kindList, kindUnorderedList:
		if n.Kind() == document.Array {
			return v
		}
	}
	return f.of(f.typed(n, t))
}

// ref is the value as cel-go has it.
func (f *Frame) ref(v val) ref.Val {
	switch v.kind {
	case valBool:
		return types.Bool(v.bool())
	case valInt:
		f.use()
		return f.newInt(v.int())
	case valUint:
		return types.Uint(v.num)
	case valDouble:
		f.use()
		return f.newDouble(v.double())
	case valString:
		f.use()
		return f.newString(v.str())
	case valNode:
		f.use()
		return f.value(v.node(), v.typ())
	case valList:
		return v.list().ref(f)
	case valRef, valErr:
		return v.ref()
	}
	return types.NullValue
}

// of is a value of cel-go's as native plans have it.
func (f *Frame) of(v ref.Val) val {
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
	case *object:
		return nodeVal(v.node, v.typ)
	case *list:
		return nodeVal(v.node, v.typ)
	case *types.Err, *types.Unknown:
		return errVal(v)
	}
	return refVal(v)
}

// literal is the value as cel-go has it, in memory of its own.
func (v val) literal() ref.Val {
	switch v.kind {
	case valBool:
		return types.Bool(v.bool())
	case valInt:
		return types.Int(v.int())
	case valUint:
		return types.Uint(v.num)
	case valDouble:
		return types.Double(v.double())
	case valString:
		return types.String(v.str())
	case valList:
		return v.list().made
	case valRef, valErr:
		return v.ref()
	}
	return types.NullValue
}
