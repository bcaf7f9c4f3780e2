package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Program is a compiled expression. It is immutable and safe for concurrent
// use; each evaluation needs a [Frame] of its own goroutine.
type Program struct {
	// What a sequence reads of each of its programs stands together.
	test        plan.Condition // of the native plan; nil if there is none, or it has no condition
	observed    *Observation   // nil unless a test asks
	optionalOld bool           // oldSelf is an optional value

	source        string
	native        *plan.Native
	plan          interpreter.InterpretableV2 // nil if native runs
	reason        string                      // why there is no native plan
	uses          plan.Uses
	readsUser     bool // see user.go
	readsKind     bool
	needsNoObject bool
	foreign       bool // it can return values of other objects; see redact.go
	limited       bool // request is the variable of rate limits
	carried       bool // it reads fields of the object that a server carries over
	size          plan.FrameSize
	wholes        []Read // what may be too long for it
	counts        []Read // numbers that say how many items it makes
}

// Source is the expression.
func (p *Program) Source() string { return p.source }

// Uses reports whether the expression refers to the variable.
func (p *Program) Uses(s value.Slot) bool { return p.uses&(1<<s) != 0 }

// ReadsCarried reports whether the expression reads fields of the object that a server carries over from the stored
// object: fields of metadata that are the server's, and the status.
func (p *Program) ReadsCarried() bool { return p.carried }

// Plan reports whether the expression runs natively, and why it does not.
func (p *Program) Plan() (native bool, reason string) { return p.native != nil, p.reason }

// UsesAuthorizer reports whether the expression refers to the authorizer.
func (p *Program) UsesAuthorizer() bool { return p.uses&plan.UsesAuthorizer != 0 }

// EvalBool evaluates a condition. The error is an [*Error]; with one the result
// means nothing.
func (p *Program) EvalBool(f *Frame, v *Vars) (result bool, err error) {
	if p.observed == nil && f.own.tracer == nil {
		return p.evalBool(f, v)
	}
	result, err = p.evalBool(f, v)
	if p.observed != nil {
		p.observed.note(result, err)
	}
	if f.own.tracer != nil {
		f.tracedBool(p, v, result, err)
	}
	return result, err
}

func (p *Program) evalBool(f *Frame, v *Vars) (result bool, err error) {
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	if n := p.native; n != nil {
		if p.test != nil {
			switch p.test(&f.Machine) {
			case plan.IsTrue:
				return true, nil
			case plan.IsFalse:
				return false, nil
			}
			return false, p.failure(f.Err, "bool")
		}
		v := f.Scalar(n.Eval(&f.Machine))
		if v.Kind == plan.ValBool {
			return v.Bool(), nil
		}
		return false, p.failure(f.Ref(v), "bool")
	}
	switch out := p.plan.Exec(f.exec).(type) {
	case types.Bool:
		return bool(out), nil
	default:
		return false, p.failure(out, "bool")
	}
}

// EvalString evaluates an expression of the type string. The string may
// share memory with the variables' documents. The error is an [*Error].
func (p *Program) EvalString(f *Frame, v *Vars) (result string, err error) {
	result, _, err = p.EvalOptionalString(f, v)
	return result, err
}

// EvalOptionalString evaluates an expression that is a string or null;
// ok is false for null. The error is an [*Error].
func (p *Program) EvalOptionalString(f *Frame, v *Vars) (result string, ok bool, err error) {
	if f.own.tracer != nil {
		defer func() { f.traced(p, v, "", err) }()
	}
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	if n := p.native; n != nil {
		switch v := f.Scalar(n.Eval(&f.Machine)); v.Kind {
		case plan.ValString:
			return v.Str(), true, nil
		case plan.ValNull:
			return "", false, nil
		default:
			return "", false, p.failure(f.Ref(v), "string")
		}
	}
	switch out := p.plan.Exec(f.exec).(type) {
	case types.String:
		return string(out), true, nil
	case types.Null:
		return "", false, nil
	default:
		return "", false, p.failure(out, "string")
	}
}

// EvalInt evaluates an expression of an integer type. The error is an
// [*Error]; with one the result means nothing.
func (p *Program) EvalInt(f *Frame, v *Vars) (result int64, err error) {
	if f.own.tracer != nil {
		defer func() { f.traced(p, v, "", err) }()
	}
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	if n := p.native; n != nil {
		v := f.Scalar(n.Eval(&f.Machine))
		if v.Kind == plan.ValInt {
			return v.Int(), nil
		}
		return 0, p.failure(f.Ref(v), "int")
	}
	switch out := p.plan.Exec(f.exec).(type) {
	case types.Int:
		return int64(out), nil
	default:
		return 0, p.failure(out, "int")
	}
}

// evalKept evaluates an expression and keeps its value beyond the evaluation.
func (p *Program) evalKept(f *Frame, v *Vars) (result plan.Val, err error) {
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	if n := p.native; n != nil {
		result = f.Scalar(n.Eval(&f.Machine))
		if result.Kind == plan.ValList && result.List().Made == nil {
			result.List().Kept = true
		}
	} else {
		result = f.Of(p.plan.Exec(f.exec))
	}
	if result.Kind == plan.ValErr {
		return plan.Val{}, errorOf(p, result.Ref())
	}
	f.Retained++
	return result, nil
}

func (p *Program) failure(out ref.Val, want string) error {
	if failure := errorOf(p, out); failure != nil {
		return failure
	}
	return &Error{Cause: value.Failed, Expression: p.source, Detail: fmt.Sprintf("must evaluate to %s but got %s", want,
		out.Type().TypeName())}
}

// finish ends an evaluation, also one that panicked.
func (f *Frame) finish(err *error) {
	if r := recover(); r != nil {
		*err = f.stopped(f.program, r)
	}
	f.leave()
}

// stopped returns the error of an evaluation that panicked.
func (f *Frame) stopped(p *Program, r any) error {
	switch r := r.(type) {
	case value.Stop:
		failure := &Error{Cause: value.Cause(r), Expression: p.source, Detail: detailOf(r)}
		if failure.Cause == value.OverLimit {
			failure.Detail += p.shorten(f.vars)
		}
		return failure
	default:
		return &Error{Cause: value.Internal, Expression: p.source,
			Detail: p.detail(fmt.Sprintf("internal error: %v", r))}
	}
}

// EvalValue evaluates a part of an expression. The value may be read until the
// evaluation around it ends; see [Program.Around]. The error is an [*Error].
func (p *Program) EvalValue(f *Frame, v *Vars) (ref.Val, error) {
	result, err := p.evalKept(f, v)
	if err != nil {
		return nil, err
	}
	return f.Ref(result), nil
}

// Around evaluates parts of the expression one after another, as run does, within
// what is left of the shared budget, at most [ExpressionLimit] units of it. The
// error is an [*Error]: whatever is wrong leads out of run.
func (p *Program) Around(f *Frame, v *Vars, run func()) (err error) {
	restore := f.Arena.Share(ExpressionLimit)
	kept, loops := f.Retained, len(v.loops)
	around := &Program{source: p.source} // whose evaluation consists of the evaluations of p's parts
	f.enter(around, &around.size, v)
	defer func() {
		v.loops = v.loops[:loops]
		restore()
	}()
	defer f.finish(&err)
	defer func() {
		if v.named.list == nil {
			f.Retained = kept // no variable keeps what was made here
		}
	}()
	run()
	return nil
}

// errorOf turns what cel-go returned into an error, or nil when it is a value.
func errorOf(p *Program, v ref.Val) error {
	switch v := v.(type) {
	case *types.Err:
		return &Error{Cause: value.Failed, Expression: p.source, Detail: p.detail(v.Error())}
	case *types.Unknown:
		return &Error{Cause: value.Failed, Expression: p.source, Detail: p.detail("no value: " + v.String())}
	case nil:
		return &Error{Cause: value.Internal, Expression: p.source, Detail: "no result"}
	}
	return nil
}
