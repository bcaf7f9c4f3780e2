package plan

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/pattern"
)

// MatchesConstant plans 'matches' with a literal pattern so that it allocates nothing, which cel-go's own optimisation
// does.
var MatchesConstant = &interpreter.RegexOptimization{
	Function:   interpreter.MatchesRegexOptimization.Function,
	RegexIndex: interpreter.MatchesRegexOptimization.RegexIndex,
	Factory: func(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
		re, err := pattern.New(text)
		if err != nil {
			return nil, err
		}
		return &matchCall{InterpretableCall: call, subject: call.Args()[0], re: re}, nil
	},
}

type matchCall struct {
	interpreter.InterpretableCall
	subject interpreter.InterpretableV2
	re      *pattern.Pattern
}

// Exec implements interpreter.InterpretableV2.
func (c *matchCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.subject.Exec(frame)
	if s, ok := v.(types.String); ok {
		return types.Bool(c.re.Match(string(s)))
	}
	if types.IsUnknownOrError(v) {
		return v
	}
	if o, ok := v.(*types.Optional); ok {
		if s, ok := o.Value().(string); ok { // as in cel-go
			return types.Bool(c.re.Match(s))
		}
	}
	return types.LabelErrNode(c.ID(), types.NoSuchOverloadErr())
}

// Eval implements interpreter.Interpretable.
func (c *matchCall) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// Adapter lets values that are CEL values already pass before cel-go's adapter looks for what else they could be.
type Adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a Adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case *value.Map:
		return v
	case *value.List:
		return v
	case ref.Val: // cases for strings and numbers would copy them
		return v
	}
	return a.Adapter.NativeToValue(v)
}
