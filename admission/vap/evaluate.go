package vap

import (
	"context"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Validate implements admission.Validator.
func (p *Policy) Validate(ctx context.Context, a *admission.Attributes, r *admission.Report) error {
	begun, first, why := false, 0, error(nil)
	if p.plain && a.IsMatched() {
		if first, why = p.first(a.Frame, a.Frame.Vars()); first == len(p.validations) {
			return nil // as for most requests
		}
		begun = true
	}
	e := evaluation{policy: p, attributes: a, frame: a.Frame, vars: a.Frame.Vars(), begun: begun, first: first,
		why: why}
	if !a.IsMatched() {
		as, matches, err := p.Matches(ctx, a, r)
		if !matches {
			return err
		}
		if e.other = as != a.Info.GroupVersionResource(); e.other {
			e.as = as
			defer a.Bind()
		}
	}
	for _, b := range p.bindings {
		mark := r.Mark()
		about, err := e.bind(ctx, b, r)
		if about || err != nil || r.Grew(mark) {
			err = b.Soften(ctx, a, mark, err, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// first evaluates the validations up to the first that is not true, as [cel.Sequence.Next] does.
func (p *Policy) first(f *cel.Frame, v *cel.Vars) (int, error) {
	f.SetBudget(cel.PolicyBudget)
	return p.sequence.Next(f, v, 0)
}

// IsAbout reports whether the policy judges the request by one of its bindings, or whether it does
// cannot be determined.
func (p *Policy) IsAbout(ctx context.Context, a *admission.Attributes) bool {
	return p.IsAboutBy(ctx, p.common(), a)
}

// bind evaluates the policy for a binding, once for each parameter. It reports whether the binding
// matches the request. The error is the answer to the request.
func (e *evaluation) bind(ctx context.Context, b *Binding, r *admission.Report) (about bool, err error) {
	found, err := e.policy.Params(ctx, b.Binding, e.attributes, r)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if err := e.convert(); err != nil {
		return true, e.policy.Misconfigured(b.Binding, err, r)
	}
	for _, param := range found {
		if err := e.run(ctx, param, r); err != nil {
			var answer *status.Error
			if errors.As(err, &answer) {
				return true, answer
			}
			if err := e.policy.Misconfigured(b.Binding, err, r); err != nil {
				return true, err
			}
			continue
		}
		e.act(b, r)
	}
	return true, nil
}

// convert lets the policy see the request as the version of its resource that the policy's rules name.
func (e *evaluation) convert() error {
	if !e.other || e.converted {
		return nil
	}
	_, err := policy.Convert(e.attributes, e.as)
	e.converted = err == nil
	return err
}

// An evaluation runs a policy for one request. Bindings with the same parameter, or none, have the
// same outcomes, so that the policy is evaluated once for bindings that follow each other.
type evaluation struct {
	policy     *Policy
	attributes *admission.Attributes
	frame      *cel.Frame
	vars       *cel.Vars

	as        schema.GroupVersionResource // as which the policy sees the request
	other     bool                        // that is not as it came
	converted bool                        // to that

	begun    bool  // the first validation that is not true is known
	first    int   // its index
	why      error // why it has no value
	done     bool
	param    document.Node
	failed   error     // the policy could not be evaluated at all
	outcomes []outcome // of the validations that did not pass
	broken   []string  // messages of annotations that failed
}

// An outcome is a validation that did not pass.
type outcome struct {
	index         int // of the validation
	status.Denial     // its messages do not begin as sentences yet
}

// run evaluates the policy for a parameter; an invalid node means no parameter. What it finds is
// noted; errors of expressions are handled as the failure policy says. It returns an error if the
// policy could not be evaluated at all.
func (e *evaluation) run(ctx context.Context, param document.Node, r *admission.Report) error {
	if e.done && e.param == param {
		return e.failed
	}
	e.done, e.param, e.outcomes, e.broken = true, param, e.outcomes[:0], e.broken[:0]
	e.vars.Set(value.Params, param, nil)
	e.failed = e.evaluate(ctx, r)
	if cel.IsSkip(e.failed) {
		// A state that is not known, and is not to matter then.
		e.outcomes, e.broken = e.outcomes[:0], e.broken[:0]
		r.Ignored(e.policy.Name(), e.failed)
		e.failed = nil
	}
	return e.failed
}

func (e *evaluation) evaluate(ctx context.Context, r *admission.Report) error {
	p := e.policy
	applies, err := e.matches()
	switch {
	case cel.IsSkip(err):
		return err
	case err != nil:
		e.fail(0, "", err, r)
		return nil
	case !applies:
		return nil
	}
	if err := p.BindNamespace(ctx, e.attributes); err != nil {
		return err
	}
	p.OpenVariables(e.frame, e.vars)
	defer p.CloseVariables(e.frame, e.vars)
	if !e.begun {
		e.first, e.why = p.first(e.frame, e.vars)
	}
	e.begun = false // of the next parameter
	for i, err := e.first, e.why; i < len(p.validations); i, err = p.sequence.Next(e.frame, e.vars, i+1) {
		err = e.note(i, err, r)
		if cel.IsSkip(err) {
			return err
		}
		if err != nil {
			// Nothing more can be evaluated, and Kubernetes reports none of the earlier results.
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

// matches reports whether the match conditions hold.
func (e *evaluation) matches() (bool, error) {
	p := e.policy
	if p.composed {
		// The values of variables are not kept: validations see namespaceObject.
		p.OpenVariables(e.frame, e.vars)
		defer p.CloseVariables(e.frame, e.vars)
	}
	return p.MatchesConditions(e.frame, e.vars)
}

func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}

// fail records a failure of the policy, of an expression for a field.
func (e *evaluation) fail(index int, about string, err error, r *admission.Report) {
	if e.policy.FailurePolicy() == admission.Ignore {
		r.Ignored(e.policy.Name(), err)
		return
	}
	o := outcome{index, policy.Failure(metav1.StatusReasonInvalid, err.Error())}
	var failure *cel.Error
	if errors.As(err, &failure) && failure.Cause == value.Failed {
		// The expression has no value for this object.
		o.Cause.Type, o.Cause.Field = metav1.CauseTypeFieldValueInvalid, about
	}
	e.outcomes = append(e.outcomes, o)
}

// note notes a validation that does not hold, or could not be evaluated. The error ends the evaluation of the policy.
func (e *evaluation) note(index int, err error, r *admission.Report) error {
	v := &e.policy.validations[index]
	switch {
	case err == nil:
		e.outcomes = append(e.outcomes, outcome{index, status.Denial{Reason: v.reason}})
	case fatal(err):
		return err
	default:
		e.fail(index, v.field, err, r)
	}
	return nil
}

// word says of the validations that do not hold what is wrong. Like in Kubernetes, messages have what validations leave
// of the budget.
func (e *evaluation) word() {
	for i := range e.outcomes {
		if o := &e.outcomes[i]; !o.Failed {
			o.Cause.Message = e.message(&e.policy.validations[o.index])
		}
	}
	for i := range e.outcomes {
		if o := &e.outcomes[i]; !o.Failed {
			e.explain(o, &e.policy.validations[o.index])
		}
	}
	if item := e.attributes.Item; item != "" {
		for i := range e.outcomes {
			e.outcomes[i].PlaceIn(item)
		}
	}
}

// message returns what the author has to say; "" for nothing.
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
			if e.policy.FailurePolicy() == admission.Ignore {
				r.Ignored(e.policy.Name(), err)
			} else {
				e.broken = append(e.broken, err.Error())
			}
			if fatal(err) {
				return nil
			}
			continue
		}
		if value = strings.TrimSpace(value); ok && value != "" {
			r.Annotate(e.policy.Name(), a.key, value)
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
				p.Deny(b.Binding, o.Denial, r)
			case admissionv1.Warn:
				r.Warn(status.ValidationFailed(p.Name(), b.Name(), o.Cause.Message))
			case admissionv1.Audit:
				r.Audit(admission.AuditedFailure{
					Message: o.Cause.Message, Policy: b.PolicyName(), Binding: b.Name(), ExpressionIndex: o.index,
					ValidationActions: b.texts,
				})
			}
		}
	}
	// A broken annotation denies the request whatever the binding's actions are, as in Kubernetes.
	for _, message := range e.broken {
		p.Deny(b.Binding, policy.Failure(metav1.StatusReasonInvalid, message), r)
	}
}
