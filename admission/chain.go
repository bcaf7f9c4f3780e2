package admission

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Chain is the admission policies of one policy set. It is immutable and safe
// for concurrent use. The zero value has no policies.
type Chain struct {
	mutators   []Mutator
	validators []Validator

	mutating, validating index
	// terms of policies at their positions; nil if none has any
	mutatorTerms, validatorTerms []Terms
}

// NewChain makes a chain of compiled policies, in any order.
func NewChain(mutators []Mutator, validators []Validator) *Chain {
	c := &Chain{mutators: byStage(mutators), validators: byName(validators)}
	c.mutating = newIndex(c.mutators)
	c.validating = newIndex(c.validators)
	c.mutatorTerms, c.validatorTerms = allTerms(c.mutators), allTerms(c.validators)
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

// Concerns reports whether any policy may concern the operation on the resource.
func (c *Chain) Concerns(i *resource.Info, o Operation) bool {
	return c.mutating.concerns(i, o) || c.validating.concerns(i, o)
}

// Foresees reports whether a request's [resource.Foresight] may know of any policy that it is not about the request.
func (c *Chain) Foresees() bool { return c.mutating.foresees || c.validating.foresees }

// IsNamed reports whether a rule of any policy names the operation on the resource, whatever else the policy says.
func (c *Chain) IsNamed(i *resource.Info, o Operation) bool {
	return c.mutating.names(i, o) || c.validating.names(i, o)
}

// Validates reports whether any validating policy may concern the operation on the resource.
func (c *Chain) Validates(i *resource.Info, o Operation) bool { return c.validating.concerns(i, o) }

// Mutates reports whether a mutating policy may concern the operation.
func (c *Chain) Mutates(i *resource.Info, o Operation) bool { return c.mutating.concerns(i, o) }

// Differs reports whether a policy may concern one operation on the resource and not the other.
func (c *Chain) Differs(i *resource.Info, a, b Operation) bool {
	return c.mutating.differs(i, a, b) || c.validating.differs(i, a, b)
}

// NeedsOld reports whether a policy that may concern the request reads the stored object.
func (c *Chain) NeedsOld(i *resource.Info, o Operation) bool {
	return c.mutating.needsOld(i, o) || c.validating.needsOld(i, o)
}

// ReadsCarried reports whether a validator that may concern an update reads fields that a server carries over from the
// stored object.
func (c *Chain) ReadsCarried(i *resource.Info) bool { return c.validating.readsCarried(i, Update) }

// Validate runs the validators that concern the request, all of them, and
// collects what they find in the report.
func (c *Chain) Validate(ctx context.Context, a *Attributes, r *Report) {
	s := c.validating.searchFor(a)
	bound := false
	for p := s.next(); p >= 0; p = s.next() {
		v := c.validators[p]
		if !bound {
			a.Bind() // validators change nothing
			bound = true
		}
		if c.validatorTerms != nil && c.validatorTerms[p] != nil {
			validateBy(ctx, c.validatorTerms[p], v, a, r)
			continue
		}
		before := r.measure(a)
		if r.Recorder != nil {
			r.Recorder.Begin(ctx, v, a, r)
		}
		if err := validate(ctx, v, a, r); err != nil {
			refuse(v, err, r)
		}
		r.decided(v.Name(), before, a, Allowed)
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
func validateBy(ctx context.Context, t Terms, v Validator, a *Attributes, r *Report) {
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
	r.decided(v.Name(), before, a, Allowed)
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
