package vap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
)

// Validate implements admission.Validator.
func (p *Policy) Validate(_ context.Context, a *admission.Attributes, r *admission.Report) error {
	matches, err := p.match.matches(a)
	if err != nil {
		p.misconfigured(nil, err, r)
		return nil
	}
	if !matches {
		return nil
	}
	e := evaluation{policy: p, frame: a.Frame, vars: a.Frame.Vars()}
	for _, b := range p.bindings {
		matches, err := b.match.matches(a)
		switch {
		case err != nil:
			p.misconfigured(b, err, r)
		case matches:
			e.run(r)
			e.act(b, r)
		}
	}
	return nil
}

// misconfigured handles a policy or binding that cannot tell whether it matches.
func (p *Policy) misconfigured(b *Binding, err error, r *admission.Report) {
	if p.failure == admission.Ignore {
		r.Ignored(p.name, err)
		return
	}
	what := "policy"
	if b != nil {
		what = "binding"
	}
	message := fmt.Sprintf("failed to configure %s: %v", what, err)
	r.Deny(p.denial(b, outcome{message: message, reason: metav1.StatusReasonInvalid, failed: true}))
}

// An evaluation runs a policy for one request. Without parameters all bindings have the same outcomes, so that the policy
// is evaluated once, when the first binding matches.
type evaluation struct {
	policy *Policy
	frame  *cel.Frame
	vars   *cel.Vars

	done     bool
	outcomes []outcome // of what did not pass
	broken   []string  // messages of annotations that failed
}

// An outcome is a validation that did not pass.
type outcome struct {
	index   int // of the validation
	message string
	reason  metav1.StatusReason
	field   string
	failed  bool // the validation could not be evaluated
}

// run evaluates the policy. What it finds is noted; errors are handled as the failure policy says.
func (e *evaluation) run(r *admission.Report) {
	if e.done {
		return
	}
	e.done = true
	p := e.policy
	e.frame.SetBudget(cel.MatchConditionsBudget)
	applies, err := e.conditions()
	if err != nil {
		e.fail(0, err, r)
		return
	}
	if !applies {
		return
	}
	if p.variables != nil {
		e.frame.OpenVariables(e.vars, p.variables)
		defer e.frame.CloseVariables(e.vars)
	}
	e.frame.SetBudget(cel.PolicyBudget)
	for i := range p.validations {
		if err := e.validate(i, r); err != nil {
			// Nothing more can be evaluated, and Kubernetes reports nothing of what was.
			e.outcomes = e.outcomes[:0]
			e.fail(i, err, r)
			break
		}
	}
	if len(p.annotations) > 0 {
		e.frame.SetBudget(cel.PolicyBudget)
		e.annotate(r)
	}
}

// conditions tells whether all match conditions hold: one that does not settles it, whatever failed before it.
func (e *evaluation) conditions() (bool, error) {
	var failures []error
	for _, c := range e.policy.conditions {
		holds, err := c.EvalBool(e.frame, e.vars)
		switch {
		case err != nil && fatal(err):
			return false, err
		case err != nil:
			failures = append(failures, err)
		case !holds:
			return false, nil
		}
	}
	switch len(failures) {
	case 0:
		return true, nil
	case 1:
		return false, failures[0]
	}
	texts := make([]string, len(failures))
	for i, err := range failures {
		texts[i] = err.Error()
	}
	return false, errors.New("[" + strings.Join(texts, ", ") + "]")
}

func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}

// fail notes a failure of the policy.
func (e *evaluation) fail(index int, err error, r *admission.Report) {
	if e.policy.failure == admission.Ignore {
		r.Ignored(e.policy.name, err)
		return
	}
	e.outcomes = append(e.outcomes, outcome{index: index, message: err.Error(), reason: metav1.StatusReasonInvalid, failed: true})
}

// validate evaluates one validation. The error ends the evaluation of the policy.
func (e *evaluation) validate(index int, r *admission.Report) error {
	v := &e.policy.validations[index]
	holds, err := v.program.EvalBool(e.frame, e.vars)
	switch {
	case err != nil && fatal(err):
		return err
	case err != nil:
		e.fail(index, err, r)
	case !holds:
		e.outcomes = append(e.outcomes, outcome{index: index, message: e.message(v), reason: v.reason, field: v.field})
	}
	return nil
}

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

// annotate evaluates the audit annotations.
func (e *evaluation) annotate(r *admission.Report) {
	for _, a := range e.policy.annotations {
		value, ok, err := a.program.EvalOptionalString(e.frame, e.vars)
		if err != nil {
			if e.policy.failure == admission.Ignore {
				r.Ignored(e.policy.name, err)
			} else {
				e.broken = append(e.broken, err.Error())
			}
			if fatal(err) {
				return
			}
			continue
		}
		if value = strings.TrimSpace(value); ok && value != "" {
			r.Annotate(e.policy.name, a.key, value)
		}
	}
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
		r.Deny(p.denial(b, outcome{message: message, reason: metav1.StatusReasonInvalid, failed: true}))
	}
}

// denial words an outcome as Kubernetes does.
func (p *Policy) denial(b *Binding, o outcome) admission.Denial {
	d := admission.Denial{Policy: p.name, Reason: o.reason, Field: o.field, Failed: o.failed}
	if b == nil {
		d.Message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", p.name, o.message)
		return d
	}
	d.Binding = b.name
	d.Message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", p.name, b.name, o.message)
	return d
}
