package admission

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/status"
)

// A Chain is the admission policies of one policy set. It is immutable and safe
// for concurrent use. The zero value has no policies.
type Chain struct {
	mutators   []Mutator
	validators []Validator

	mutating, validating policyIndex
	// terms of policies at their positions; nil if none has any
	mutatorTerms, validatorTerms []Terms
	empty                        *Scoped // of resources without policies
}

// NewChain makes a chain of compiled policies, in any order.
func NewChain(mutators []Mutator, validators []Validator) *Chain {
	c := &Chain{mutators: byStage(mutators), validators: byName(validators)}
	c.mutating = newIndex(c.mutators)
	c.validating = newIndex(c.validators)
	c.mutatorTerms, c.validatorTerms = allTerms(c.mutators), allTerms(c.validators)
	c.empty = &Scoped{chain: c}
	return c
}

// Names returns the names of the policies, mutators first.
func (c *Chain) Names() []string { return append(names(c.mutators), names(c.validators)...) }

func names[P Policy](policies []P) (all []string) {
	for _, p := range policies {
		all = append(all, p.Name())
	}
	return all
}

// validate runs the found validators that match the request. Those among matched do for sure.
func (c *Chain) validate(ctx context.Context, f found, matched positions, a *Attributes, r *Report) {
	if len(f) == 0 {
		return
	}
	defer func() { a.matched = false }()
	s := searchFor(f, a)
	bound := false
	for n := s.Next(); n >= 0; n = s.Next() {
		v := c.validators[n]
		if !bound {
			a.Bind() // validators change nothing
			bound = true
		}
		if c.validatorTerms != nil && c.validatorTerms[n] != nil {
			a.matched = false
			c.validateBy(ctx, n, a, r)
			continue
		}
		a.matched = matched.has(n)
		before := r.measure(a)
		if r.Recorder != nil {
			r.Recorder.Begin(ctx, v, a, r)
		}
		if err := validate(ctx, v, a, r); err != nil {
			refuse(v, err, r)
		}
		r.decided(len(c.mutators)+n, v.Name(), before, a, Allowed)
	}
}

// refuse handles the error of a validator.
func refuse(v Validator, err error, r *Report) {
	var answer *status.Error
	switch {
	case errors.As(err, &answer):
		r.Answer(answer)
	case v.FailurePolicy() == Ignore:
		r.Ignored(v.Name(), err)
	default:
		r.Deny(failed(v.Name(), err))
	}
}

// validateBy runs a validator as its terms say.
func (c *Chain) validateBy(ctx context.Context, n int, a *Attributes, r *Report) {
	v, t := c.validators[n], c.validatorTerms[n]
	before, mark := r.measure(a), r.Mark()
	if r.Recorder != nil {
		r.Recorder.Begin(ctx, v, a, r)
	}
	tried, asked := r.stand(ctx, a, v, t)
	a.Bind() // conditions of exceptions have variables of their own
	if asked {
		err := validate(ctx, v, a, r)
		switch {
		case err != nil && tried:
			r.tryFailure(t, v, err)
		case err != nil:
			refuse(v, err, r)
		}
		if tried {
			r.Soften(t, mark)
		}
	}
	r.decided(len(c.mutators)+n, v.Name(), before, a, Allowed)
}

// tryFailure handles the error of a policy that is tried, which never answers the request.
func (r *Report) tryFailure(t Terms, p Policy, err error) {
	var answer *status.Error
	if p.FailurePolicy() == Ignore && !errors.As(err, &answer) {
		r.Ignored(p.Name(), err)
		return
	}
	r.Try(t, failed(p.Name(), err))
}

// errPanic is the error of a policy that panicked. The value of the panic is left out, because it
// may name values of other objects.
var errPanic = errors.New("the policy failed with an internal error")

func validate(ctx context.Context, v Validator, a *Attributes, r *Report) (err error) {
	defer recovered(&err)
	return v.Validate(ctx, a, r)
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %w", errPanic, panicked{p})
	}
}

// panicked keeps what was panicked with for the log, which unwraps it; a message does not show it.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprint(p.value) }

func failed(policy string, err error) status.Denial {
	message := err.Error()
	if errors.Is(err, errPanic) {
		message = errPanic.Error()
	}
	d := status.Denial{
		Policy: policy,
		Cause:  metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeInternal), Message: message},
		Failed: true,
	}
	d.Begin(status.DeniedByPolicy(policy))
	return d
}

// Each goes through the policies of the chain, mutators first, each kind in the order in which they
// run.
func (c *Chain) Each(f func(p Policy, mutates bool)) {
	for _, p := range c.mutators {
		f(p, true)
	}
	for _, p := range c.validators {
		f(p, false)
	}
}
