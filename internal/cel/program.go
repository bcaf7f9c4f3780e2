package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// A Program is a compiled expression. It is immutable and safe for concurrent
// use; each evaluation needs a [Frame] of its own goroutine.
type Program struct {
	source      string
	native      *nativePlan
	plan        interpreter.InterpretableV2 // nil where native runs
	reason      string                      // why there is no native plan
	uses        uses
	roots       []Slot // the variables among them that hold nodes
	foreign     bool   // it can come to values of other objects; see redact.go
	optionalOld bool   // oldSelf is an optional value
	limited     bool   // request is that of rate limits
	sizes       int    // what counted calls need to remember; see meter.go
	field       []step
	meaning     *meaning // what it demands; see derive.go
}

// Source is the expression.
func (p *Program) Source() string { return p.source }

// Uses tells whether the expression refers to the variable.
func (p *Program) Uses(s Slot) bool { return p.uses&(1<<s) != 0 }

// Plan tells whether the expression runs natively, and why it does not.
func (p *Program) Plan() (native bool, reason string) { return p.native != nil, p.reason }

// UsesAuthorizer tells whether the expression refers to the authorizer.
func (p *Program) UsesAuthorizer() bool { return p.uses&usesAuthorizer != 0 }

// Field is the path of the field that the expression is about, relative to self
// or object, such as 'spec.replicas'; empty where the expression does not tell.
// It is meant to be called when the expression is compiled.
func (p *Program) Field() string { return pathText(p.field) }

// EvalBool evaluates a condition. The error is an [*Error]; with one the result
// means nothing.
func (p *Program) EvalBool(f *Frame, v *Vars) (result bool, err error) {
	f.begin(p, v)
	defer f.finish(p, &err)
	if n := p.native; n != nil {
		if n.test != nil {
			switch n.test(f) {
			case isTrue:
				return true, nil
			case isFalse:
				return false, nil
			}
			return false, p.failure(f.err, "bool")
		}
		v := f.settled(n.eval(f))
		if v.kind == valBool {
			return v.bool(), nil
		}
		return false, p.failure(f.ref(v), "bool")
	}
	switch out := p.plan.Exec(f.exec).(type) {
	case types.Bool:
		return bool(out), nil
	default:
		return false, p.failure(out, "bool")
	}
}

// EvalString evaluates an expression whose value is a string. The string may
// share memory with the variables' documents. The error is an [*Error].
func (p *Program) EvalString(f *Frame, v *Vars) (result string, err error) {
	result, _, err = p.EvalOptionalString(f, v)
	return result, err
}

// EvalOptionalString evaluates an expression whose value is a string or null;
// ok is false for null. The error is an [*Error].
func (p *Program) EvalOptionalString(f *Frame, v *Vars) (result string, ok bool, err error) {
	f.begin(p, v)
	defer f.finish(p, &err)
	if n := p.native; n != nil {
		switch v := f.settled(n.eval(f)); v.kind {
		case valString:
			return v.str(), true, nil
		case valNull:
			return "", false, nil
		default:
			return "", false, p.failure(f.ref(v), "string")
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

// EvalInt evaluates an expression whose value is an integer. The error is an
// [*Error]; with one the result means nothing.
func (p *Program) EvalInt(f *Frame, v *Vars) (result int64, err error) {
	f.begin(p, v)
	defer f.finish(p, &err)
	if n := p.native; n != nil {
		v := f.settled(n.eval(f))
		if v.kind == valInt {
			return v.int(), nil
		}
		return 0, p.failure(f.ref(v), "int")
	}
	switch out := p.plan.Exec(f.exec).(type) {
	case types.Int:
		return int64(out), nil
	default:
		return 0, p.failure(out, "int")
	}
}

// evalKept evaluates an expression whose value is kept beyond the evaluation.
func (p *Program) evalKept(f *Frame, v *Vars) (result val, err error) {
	f.begin(p, v)
	defer f.finish(p, &err)
	if n := p.native; n != nil {
		result = f.settled(n.eval(f))
		if result.kind == valList && result.list().made == nil {
			result.list().kept = true
		}
	} else {
		result = f.of(p.plan.Exec(f.exec))
	}
	if result.kind == valErr {
		return val{}, errorOf(p, result.ref())
	}
	f.retained++
	return result, nil
}

func (p *Program) failure(out ref.Val, want string) error {
	if failure := errorOf(p, out); failure != nil {
		return failure
	}
	return &Error{Cause: Failed, Expression: p.source, Detail: fmt.Sprintf("must evaluate to %s but got %s", want, out.Type().TypeName())}
}

// finish ends an evaluation, also one that panicked.
func (f *Frame) finish(p *Program, err *error) {
	switch r := recover().(type) {
	case nil:
	case stop:
		*err = &Error{Cause: Cause(r), Expression: p.source, Detail: r.detail()}
	default:
		*err = &Error{Cause: Internal, Expression: p.source, Detail: p.detail(fmt.Sprintf("internal error: %v", r))}
	}
	f.end()
}
