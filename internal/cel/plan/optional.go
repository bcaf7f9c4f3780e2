package plan

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// PlanAlternative plans 'or' and 'orValue' of optional values, whose second operand is evaluated only when the first
// has no value. cel-go does the same, in an option of its programs that cannot be had without its cost tracking.
func PlanAlternative(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	args := call.Args()
	switch call.Function() {
	case "or":
		if id := call.OverloadID(); id == "" || id == "optional_or_optional" {
			return &alternative{id: call.ID(), first: args[0], second: args[1]}, nil
		}
	case "orValue":
		if id := call.OverloadID(); id == "" || id == "optional_orValue_value" {
			return &alternative{id: call.ID(), first: args[0], second: args[1], unwrap: true}, nil
		}
	}
	return i, nil
}

type alternative struct {
	id            int64
	first, second interpreter.InterpretableV2
	unwrap        bool // orValue
}

// ID implements interpreter.Interpretable.
func (a *alternative) ID() int64 { return a.id }

// Exec implements interpreter.InterpretableV2.
func (a *alternative) Exec(e *interpreter.ExecutionFrame) ref.Val {
	v := a.first.Exec(e)
	switch optional := v.(type) {
	case *types.Err, *types.Unknown:
		return v
	case *types.Optional:
		switch {
		case !optional.HasValue():
			return a.second.Exec(e)
		case a.unwrap:
			return optional.GetValue()
		}
		return v
	}
	return types.NoSuchOverloadErr()
}

// Eval implements interpreter.Interpretable.
func (a *alternative) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}
