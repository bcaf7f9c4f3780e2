package vap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Validate implements admission.Validator.
func (p *Policy) Validate(ctx context.Context, a *admission.Attributes, r *admission.Report) error {
	as, matches, err := p.match.Matches(ctx, a)
	if err != nil {
		p.misconfigured(nil, err, r)
		return nil
	}
	if !matches {
		return nil
	}
	e := evaluation{policy: p, attributes: a, frame: a.Frame, vars: a.Frame.Vars()}
	if e.other = as != a.Info.GroupVersionResource(); e.other {
		e.as = as
		defer a.Bind()
	}
	for _, b := range p.bindings {
		if err := e.bind(ctx, b, r); err != nil {
			return err
		}
	}
	return nil
}

// bind evaluates the policy for a binding, once for each parameter. The error is the answer to the request.
func (e *evaluation) bind(ctx context.Context, b *Binding, r *admission.Report) error {
	_, matches, err := b.match.Matches(ctx, e.attributes)
	if err != nil {
		e.policy.misconfigured(b, err, r)
		return nil
	}
	if !matches {
		return nil
	}
	found, err := b.params.Find(ctx, e.policy.params, e.attributes)
	if err == nil && len(found) > 0 {
		err = e.convert()
	}
	if err != nil {
		e.policy.misconfigured(b, err, r)
		return nil
	}
	for _, param := range found {
		if err := e.run(ctx, param, r); err != nil {
			if answer := answerOf(err); answer != nil {
				return answer
			}
			e.policy.misconfigured(b, err, r)
			continue
		}
		e.act(b, r)
	}
	return nil
}

// answerOf is the answer to the request that the error is; nil for any other.
func answerOf(err error) error {
	var answer *status.Error
	if errors.As(err, &answer) {
		return answer
	}
	return nil
}

// convert lets the policy see the request as the version of its resource that the policy's rules name.
func (e *evaluation) convert() error {
	if !e.other || e.converted {
		return nil
	}
	if _, err := e.attributes.BindAs(e.as); err != nil {
		return fmt.Errorf("failed to convert object version: %w", err)
	}
	e.converted = true
	return nil
}

// misconfigured handles a policy or binding that cannot tell whether it matches.
func (p *Policy) misconfigured(b *Binding, err error, r *admission.Report) {
	if p.failure == admission.Ignore || cel.IsSkip(err) {
		r.Ignored(p.name, err)
		return
	}
	what := "policy"
	if b != nil {
		what = "binding"
	}
	message := fmt.Sprintf("failed to configure %s: %v", what, err)
	r.Deny(p.denial(b, outcome{message: message, reason: metav1.StatusReasonInvalid, kind: causeInternal, failed: true}))
}

// An evaluation runs a policy for one request. Bindings with the same parameter, or none, have the same outcomes, so that
// the policy is evaluated once for those that follow each other.
type evaluation struct {
	policy     *Policy
	attributes *admission.Attributes
	frame      *cel.Frame
	vars       *cel.Vars

	as        schema.GroupVersionResource // as which the policy sees the request
	other     bool                        // that is not as it came
	converted bool                        // to that

	done     bool
	param    document.Node
	failed   error     // the policy could not be evaluated at all
	outcomes []outcome // of what did not pass
	broken   []string  // messages of annotations that failed
}

// An outcome is a validation that did not pass.
type outcome struct {
	index   int // of the validation
	message string
	reason  metav1.StatusReason
	kind    metav1.CauseType
	field   string
	details []detail
	failed  bool // the validation could not be evaluated
}

// run evaluates the policy for a parameter; an invalid node is none. What it finds is noted; errors of expressions are handled as the
// failure policy says. It returns an error where the policy could not be evaluated at all.
func (e *evaluation) run(ctx context.Context, param document.Node, r *admission.Report) error {
	if e.done && e.param == param {
		return e.failed
	}
	e.done, e.param, e.outcomes, e.broken = true, param, e.outcomes[:0], e.broken[:0]
	e.vars.Set(cel.Params, param, nil)
	e.failed = e.evaluate(ctx, r)
	if cel.IsSkip(e.failed) {
		// A state that is not known, and is not to matter then.
		e.outcomes, e.broken = e.outcomes[:0], e.broken[:0]
		r.Ignored(e.policy.name, e.failed)
		e.failed = nil
	}
	return e.failed
}

func (e *evaluation) evaluate(ctx context.Context, r *admission.Report) error {
	p := e.policy
	e.vars.Set(cel.NamespaceObject, document.Node{}, nil) // match conditions do not see it
	applies, err := p.conditions.Hold(e.frame, e.vars)
	switch {
	case cel.IsSkip(err):
		return err
	case err != nil:
		e.fail(0, "", err, r)
		return nil
	case !applies:
		return nil
	}
	if p.needsNamespace {
		if err := e.attributes.BindNamespace(ctx); err != nil {
			return err
		}
	}
	if p.variables != nil {
		e.frame.OpenVariables(e.vars, p.variables)
		defer e.frame.CloseVariables(e.vars)
	}
	e.frame.SetBudget(cel.PolicyBudget)
	for i := range p.validations {
		err := e.validate(i, r)
		if cel.IsSkip(err) {
			return err
		}
		if err != nil {
			// Nothing more can be evaluated, and Kubernetes reports nothing of what was.
			e.outcomes = e.outcomes[:0]
			e.fail(i, p.validations[i].field, err, r)
			break
		}
	}
	e.word()
	if len(p.annotations) > 0 {
		e.frame.SetBudget(cel.PolicyBudget)
		return e.annotate(r)
	}
	return nil
}

func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}

// fail notes a failure of the policy, of an expression that is about a field.
func (e *evaluation) fail(index int, about string, err error, r *admission.Report) {
	if e.policy.failure == admission.Ignore {
		r.Ignored(e.policy.name, err)
		return
	}
	o := outcome{index: index, message: err.Error(), reason: metav1.StatusReasonInvalid, kind: causeInternal, failed: true}
	var failure *cel.Error
	if errors.As(err, &failure) && failure.Cause == cel.Failed {
		o.kind, o.field = metav1.CauseTypeFieldValueInvalid, about // the expression has no value for this object
	}
	e.outcomes = append(e.outcomes, o)
}

// causeInternal is the reason of a cause that no object is to blame for.
const causeInternal = metav1.CauseType(field.ErrorTypeInternal)

// validate evaluates one validation. The error ends the evaluation of the policy.
func (e *evaluation) validate(index int, r *admission.Report) error {
	v := &e.policy.validations[index]
	holds, err := v.program.EvalBool(e.frame, e.vars)
	switch {
	case err != nil && fatal(err):
		return err
	case err != nil:
		e.fail(index, v.field, err, r)
	case !holds:
		e.outcomes = append(e.outcomes, outcome{index: index, reason: v.reason})
	}
	return nil
}

// word says of the validations that do not hold what is wrong. Like in Kubernetes, messages have what validations leave of the budget.
func (e *evaluation) word() {
	for i := range e.outcomes {
		if o := &e.outcomes[i]; !o.failed {
			o.message = e.message(&e.policy.validations[o.index])
		}
	}
	for i := range e.outcomes {
		if o := &e.outcomes[i]; !o.failed {
			e.explain(o, &e.policy.validations[o.index])
		}
	}
}

// message is what the author has to say; "" for nothing.
func (e *evaluation) message(v *validation) string {
	if v.compute == nil {
		return v.message
	}
	// A message that costs too much is no reason to let the request pass.
	if text, err := v.compute.Eval(e.frame, e.vars); err == nil && text != "" {
		return strings.Clone(text) // it may be part of the request's body
	}
	return v.message
}

// annotate evaluates the audit annotations. The error says that the policy is to be left out.
func (e *evaluation) annotate(r *admission.Report) error {
	for _, a := range e.policy.annotations {
		value, ok, err := a.program.EvalOptionalString(e.frame, e.vars)
		if cel.IsSkip(err) {
			return err
		}
		if err != nil {
			if e.policy.failure == admission.Ignore {
				r.Ignored(e.policy.name, err)
			} else {
				e.broken = append(e.broken, err.Error())
			}
			if fatal(err) {
				return nil
			}
			continue
		}
		if value = strings.TrimSpace(value); ok && value != "" {
			r.Annotate(e.policy.name, a.key, value)
		}
	}
	return nil
}

// act does what a binding asks for with the outcomes.
func (e *evaluation) act(b *Binding, r *admission.Report) {
	p := e.policy
	for _, o := range e.outcomes {
		for _, action := range b.actions {
			switch action {
			case admissionv1.Deny:
				r.Deny(p.denial(b, o))
			case admissionv1.Warn:
				r.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, o.message))
			case admissionv1.Audit:
				r.Audit(admission.AuditedFailure{
					Message: o.message, Policy: b.policy, Binding: b.name, ExpressionIndex: o.index, ValidationActions: b.texts,
				})
			}
		}
	}
	// A broken annotation denies the request whatever the binding's actions are, as in Kubernetes.
	for _, message := range e.broken {
		r.Deny(p.denial(b, outcome{message: message, reason: metav1.StatusReasonInvalid, kind: causeInternal, failed: true}))
	}
}

// denial words an outcome as Kubernetes does.
func (p *Policy) denial(b *Binding, o outcome) admission.Denial {
	d := admission.Denial{Policy: p.name, Reason: o.reason, Type: o.kind, Field: o.field, Failed: o.failed}
	sentence := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: ", p.name)
	if b != nil {
		d.Binding = b.name
		sentence = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: ", p.name, b.name)
	}
	d.Message = sentence + o.message
	for _, x := range o.details {
		d.Details = append(d.Details, metav1.StatusCause{Type: x.kind, Message: sentence + x.text, Field: x.field})
	}
	return d
}
