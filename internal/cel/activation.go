package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// activation is the Frame as cel-go's interpreter sees it.
type activation struct{ f *Frame }

// Global implements plan.Variables.
func (a activation) Global(name string) (any, bool) { return a.ResolveName(name) }

// Composited implements plan.Variables.
func (a activation) Composited(i int, name string) (plan.Val, bool) {
	n := &a.f.vars.named
	if n.list == nil || i >= len(n.list.names) || n.list.names[i] != name {
		return plan.Val{}, false
	}
	return n.read(i), true
}

// Parent implements interpreter.Activation.
func (a activation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	f := a.f
	if name == plan.NameFrame {
		return &f.Machine, true
	}
	v := f.vars
	f.Arena.Charge(1)
	switch name {
	case plan.NameSelf:
		return v.Value(&f.Arena, value.Self)
	case plan.NameOldSelf:
		old, ok := v.Value(&f.Arena, value.OldSelf)
		if !f.program.optionalOld {
			return old, ok
		}
		if !ok {
			return types.OptionalNone, true
		}
		return types.OptionalOf(old.(ref.Val)), true
	case plan.NameObject:
		return v.orNull(f, value.Object)
	case plan.NameOldObject:
		return v.orNull(f, value.OldObject)
	case plan.NameParams:
		return v.orNull(f, value.Params)
	case plan.NameNamespaceObject:
		return v.orNull(f, value.NamespaceObject)
	case plan.NameRequest:
		request, fields := v.request, requestFields
		if f.program.limited {
			request, fields = v.limited, limitedFields
		}
		if request == nil {
			return nil, false
		}
		return f.Arena.NewRecord(request, fields), true
	case plan.NameHTTP:
		if v.http == nil {
			return nil, false
		}
		return f.Arena.NewRecord(v.http, httpFields), true
	case plan.NameVariables:
		if v.named.list == nil {
			return nil, false
		}
		return &v.named, true
	case plan.NameState:
		v.state.frame = f
		return &v.state, true
	case plan.NameAuthorizer, plan.NameRequestResource:
		return v.authorizerVal(name)
	}
	return v.bound(name)
}

func (v *Vars) orNull(f *Frame, s value.Slot) (any, bool) {
	if val, ok := v.Value(&f.Arena, s); ok {
		return val, true
	}
	return types.NullValue, true
}
