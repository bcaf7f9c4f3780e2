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

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// States are the collections behind the variable state.
type States interface {
	// State returns the objects of a collection. It is called once or more in an evaluation and
	// answers the same each time. The error says that the objects are not known; it is [ErrSkip] if
	// the policy that reads them is to be left out then. Its text is for clients.
	State(name string) ([]document.Node, error)
}

// ErrSkip is the answer of [States] if a policy is to be left out. The
// evaluation then fails with an [Error] of cause Skipped.
var ErrSkip = errors.New("the policy is left out, because a state that it reads is not known")

const stateTypeName = "kubernetes.state"

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
		fields[escaped] = apiservercel.NewDeclField(escaped, apiservercel.NewListType(apiservercel.DynType, -1), true,
			nil, nil)
	}
	return apiservercel.NewObjectType(stateTypeName, fields)
}

func declareState(state *apiservercel.DeclType) celgo.EnvOption {
	return celgo.Variable(plan.NameState, state.CelType())
}

// stateVar is the variable 'state': a map whose values are asked for when they are read.
type stateVar struct {
	frame *Frame
	of    States
}

var _ traits.Mapper = (*stateVar)(nil)

// Find implements traits.Mapper. A collection that is not known is an error, which '||' and '&&' may absorb as any
// other; one that asks for the policy to be left out ends the evaluation. has() reads it as any other expression does.
func (s *stateVar) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	objects, err := s.read(string(name))
	switch {
	case err == nil:
		return &value.Documents{Arena: &s.frame.Arena, Of: objects}, true
	case errors.Is(err, ErrSkip):
		panic(value.Stop(value.Skipped))
	}
	return types.WrapErr(err), true
}

func (s *stateVar) read(name string) ([]document.Node, error) {
	s.frame.Arena.Charge(1)
	if value.MayBeEscaped(name) {
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
func (s *stateVar) Iterator() traits.Iterator { return &value.NameIterator{} }

// Equal implements ref.Val.
func (s *stateVar) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

// Type implements ref.Val.
func (s *stateVar) Type() ref.Type { return types.MapType }

func (s *stateVar) CountsItself() {}

// Value implements ref.Val.
func (s *stateVar) Value() any { return types.NoSuchOverloadErr() }

// InOrder implements value.Ordered.
func (s *stateVar) InOrder() {}

// String implements fmt.Stringer, for errors that print the value.
func (s *stateVar) String() string { return s.Type().TypeName() }

// ConvertToType implements ref.Val.
func (s *stateVar) ConvertToType(t ref.Type) ref.Val { return value.ConvertMap(s, t) }

// ConvertToNative implements ref.Val.
func (s *stateVar) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'state' to '%s'", t)
}

var (
	_ traits.Lister   = (*value.Documents)(nil)
	_ traits.Foldable = (*value.Documents)(nil)
	_ traits.Zeroer   = (*value.Documents)(nil)
)

// StateName reports whether a collection can have the name, so that an expression can read it.
func StateName(name string) bool {
	_, ok := apiservercel.Escape(name)
	return ok
}
