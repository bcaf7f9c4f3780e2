package cel

import (
	"errors"
	"fmt"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/document"
)

// States are the collections behind the variable state.
type States interface {
	// State returns the objects of a collection. It is called once or more in an
	// evaluation and answers the same each time. The error tells that the objects are
	// not known; it is [ErrSkip] where the policy that reads them is to be left out
	// then. Its text is for clients.
	State(name string) ([]document.Node, error)
}

// ErrSkip is what [States] answer where a policy is to be left out. The
// evaluation then fails with an [Error] of cause Skipped.
var ErrSkip = errors.New("the policy is left out, because a state that it reads is not known")

// SetStates binds the variable state; nil means that nothing is known.
func (v *Vars) SetStates(s States) { v.state.of = s }

const stateTypeName = "kubernetes.state"

// DeclareState declares the variable state with the collections of these names,
// each a list of objects: state.NAME. Names that are no identifiers are escaped as
// those of fields. It must be called before anything is compiled.
func (c *AdmissionCompiler) DeclareState(names []string) { c.state = stateType(names) }

// stateType is the type of the variable state.
func stateType(names []string) *apiservercel.DeclType {
	if len(names) == 0 {
		return nil
	}
	fields := make(map[string]*apiservercel.DeclField, len(names))
	for _, name := range names {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			continue // what begins with a digit cannot be written in an expression
		}
		fields[escaped] = apiservercel.NewDeclField(escaped, apiservercel.NewListType(apiservercel.DynType, -1), true, nil, nil)
	}
	return apiservercel.NewObjectType(stateTypeName, fields)
}

func declareState(state *apiservercel.DeclType) celgo.EnvOption {
	return celgo.Variable(nameState, state.CelType())
}

// stateVar is the variable 'state': a map whose values are asked for when they are read.
type stateVar struct {
	frame *Frame
	of    States
}

var _ traits.Mapper = (*stateVar)(nil)

// Find implements traits.Mapper. A collection that is not known is an error, which '||' and '&&' may absorb as any other;
// one that asks for the policy to be left out ends the evaluation. has() reads it as any other expression does.
func (s *stateVar) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	objects, err := s.read(string(name))
	switch {
	case err == nil:
		return &documents{frame: s.frame, of: objects}, true
	case errors.Is(err, ErrSkip):
		panic(stop(Skipped))
	}
	return types.WrapErr(err), true
}

func (s *stateVar) read(name string) ([]document.Node, error) {
	s.frame.charge(1)
	if mayBeEscaped(name) {
		if plain, ok := apiservercel.Unescape(name); ok {
			name = plain
		}
	}
	if s.of == nil {
		return nil, fmt.Errorf("the state '%s' is not known", name)
	}
	return s.of.State(name)
}

// Get implements traits.Indexer.
func (s *stateVar) Get(key ref.Val) ref.Val {
	v, _ := s.Find(key)
	return v
}

// Contains implements traits.Container.
func (s *stateVar) Contains(key ref.Val) ref.Val {
	if v, _ := s.Find(key); types.IsError(v) {
		return v
	}
	return types.True
}

// Size implements traits.Sizer. An expression can only name what the type declares.
func (s *stateVar) Size() ref.Val { return types.NewErr("'state' has no size") }

// Iterator implements traits.Iterable.
func (s *stateVar) Iterator() traits.Iterator { return &nameIterator{} }

// Equal implements ref.Val.
func (s *stateVar) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

// Type implements ref.Val.
func (s *stateVar) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (s *stateVar) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (s *stateVar) ConvertToType(t ref.Type) ref.Val { return convertMap(s, t) }

// ConvertToNative implements ref.Val.
func (s *stateVar) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'state' to '%s'", t)
}

// documents is a collection of objects as a CEL list.
type documents struct {
	frame *Frame
	of    []document.Node
}

var (
	_ traits.Lister   = (*documents)(nil)
	_ traits.Foldable = (*documents)(nil)
	_ traits.Zeroer   = (*documents)(nil)
)

func (l *documents) at(i int) ref.Val {
	l.frame.charge(1)
	return l.frame.value(l.of[i], nil)
}

// Get implements traits.Indexer.
func (l *documents) Get(index ref.Val) ref.Val {
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if i < 0 || i >= len(l.of) {
		return types.NewErr("index '%d' out of range in list size '%d'", i, len(l.of))
	}
	return l.at(i)
}

// Contains implements traits.Container.
func (l *documents) Contains(elem ref.Val) ref.Val {
	for i := range l.of {
		if elem.Equal(l.at(i)) == types.True {
			return types.True
		}
	}
	return types.False
}

// Size implements traits.Sizer.
func (l *documents) Size() ref.Val { return types.Int(len(l.of)) }

// IsZeroValue implements traits.Zeroer.
func (l *documents) IsZeroValue() bool { return len(l.of) == 0 }

// Iterator implements traits.Iterable.
func (l *documents) Iterator() traits.Iterator { return &documentIterator{list: l} }

// Fold implements traits.Foldable, for comprehensions with two variables.
func (l *documents) Fold(folder traits.Folder) {
	for i := range l.of {
		if !folder.FoldEntry(types.Int(i), l.at(i)) {
			return
		}
	}
}

// Equal implements ref.Val.
func (l *documents) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok || o.Size() != l.Size() {
		return types.False
	}
	for i := range l.of {
		if types.Equal(l.at(i), o.Get(types.Int(i))) == types.False {
			return types.False
		}
	}
	return types.True
}

func (l *documents) values() []ref.Val {
	values := make([]ref.Val, len(l.of))
	for i := range l.of {
		values[i] = l.at(i)
	}
	return values
}

// Add implements traits.Adder.
func (l *documents) Add(other ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).(traits.Adder).Add(other)
}

// Type implements ref.Val.
func (l *documents) Type() ref.Type { return types.ListType }

// Value implements ref.Val: the decoded objects.
func (l *documents) Value() any {
	all := make([]any, len(l.of))
	for i, n := range l.of {
		l.frame.charge(1 + int64(len(n.Raw()))/bytesPerUnit)
		all[i] = native(n)
	}
	return all
}

// ConvertToType implements ref.Val.
func (l *documents) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.ListType, t.TypeName())
}

// ConvertToNative implements ref.Val.
func (l *documents) ConvertToNative(t reflect.Type) (any, error) {
	return types.NewRefValList(types.DefaultTypeAdapter, l.values()).ConvertToNative(t)
}

// documentIterator goes through a collection.
type documentIterator struct {
	noValue
	list *documents
	next int
}

// HasNext implements traits.Iterator.
func (it *documentIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.list.of)) }

// Next implements traits.Iterator.
func (it *documentIterator) Next() ref.Val {
	if it.next == len(it.list.of) {
		return nil
	}
	it.next++
	return it.list.at(it.next - 1)
}

// StateName tells whether a name can be that of a collection, so that an expression can read it.
func StateName(name string) bool {
	_, ok := apiservercel.Escape(name)
	return ok
}
