package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// EvalJSON evaluates an expression whose value goes into a document, and appends the value as JSON to dst. What comes
// from a document keeps its spelling; timestamps and durations are as string() makes them, bytes base64, and the
// members of maps that the expression made are sorted. ok is false for an optional without a value. The error is an
// [*Error].
func (p *Program) EvalJSON(f *Frame, v *Vars, dst []byte) (json []byte, ok bool, err error) {
	if f.own.tracer != nil {
		defer func() { f.traced(p, v, "", err) }()
	}
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	out, failure := p.made(f)
	if failure != nil {
		return dst, false, failure
	}
	if o, optional := out.(*types.Optional); optional {
		if !o.HasValue() {
			return dst, false, nil
		}
		out = o.GetValue()
	}
	json, problem := f.Arena.AppendJSON(dst, out)
	if problem != "" {
		return dst, false, &Error{Cause: value.Failed, Expression: p.source, Detail: problem}
	}
	return json, true, nil
}

// made is the value that goes into a document.
func (p *Program) made(f *Frame) (ref.Val, error) {
	var out ref.Val
	if n := p.native; n != nil {
		out = f.Ref(f.Scalar(n.Eval(&f.Machine)))
	} else {
		out = p.plan.Exec(f.exec)
	}
	return out, errorOf(p, out)
}

// EvalPatch evaluates an expression of a [PatchCompiler] and appends the apply configuration or JSON patch that it
// makes to dst. The error is an [*Error].
//
// Kubernetes turns what the expression makes into Go values, and refuses what these cannot hold: in objects null, types
// that JSON has not, and lists and maps written within others. So is it here, or a policy would do what it fails at
// there.
func (p *Program) EvalPatch(f *Frame, v *Vars, dst []byte) (json []byte, err error) {
	if f.own.tracer != nil {
		defer func() { f.traced(p, v, "", err) }()
	}
	f.enter(p, &p.size, v)
	defer f.finish(&err)
	out, failure := p.made(f)
	if failure != nil {
		return dst, failure
	}
	var problem string
	switch of := out.(type) {
	case *value.Made:
		json, problem = f.Arena.AppendConfiguration(dst, of)
	case traits.Lister:
		json, problem = f.Arena.AppendOperations(dst, of)
	default:
		problem = "type mismatch: a patch must not be of type " + out.Type().TypeName()
	}
	if problem != "" {
		return dst, &Error{Cause: value.Misfit, Expression: p.source, Detail: problem}
	}
	return json, nil
}
