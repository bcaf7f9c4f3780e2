package cel

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Cause tells the ways apart in which an evaluation can fail.
type Cause uint8

const (
	// Failed: the expression has no value for these variables, such as a
	// missing key, a division by zero or an operation its operands do not have.
	Failed Cause = iota
	// OverLimit: this one expression used more than [ExpressionLimit].
	OverLimit
	// OverBudget: the shared budget is used up.
	OverBudget
	// Cancelled: the request was cancelled or its deadline has passed.
	Cancelled
	// Internal: the evaluation panicked.
	Internal
	// Skipped: a state that the expression reads is not known, and the policy is to
	// be left out then, as if it did not match.
	Skipped
	// Misfit: the expression has a value that cannot be used as what it is for, such
	// as a patch. Detail is the whole sentence.
	Misfit
)

// An Error says why an evaluation has no result.
type Error struct {
	Cause Cause
	// Expression is the source of the expression.
	Expression string
	// Detail is what went wrong, as cel-go words it: 'no such key: size'.
	Detail string
}

// Error gives the sentence that kube-apiserver's admission gives.
func (e *Error) Error() string {
	switch e.Cause {
	case OverBudget, Cancelled, Skipped, Misfit:
		return e.Detail
	default:
		return fmt.Sprintf("expression '%s' resulted in error: %s", e.Expression, e.Detail)
	}
}

// Fatal tells whether evaluating anything else for the same object would be in
// vain.
func (e *Error) Fatal() bool {
	return e.Cause == OverBudget || e.Cause == Cancelled || e.Cause == Skipped
}

// Is implements the interface of errors.Is.
func (e *Error) Is(target error) bool { return target == ErrSkip && e.Cause == Skipped }

// IsSkip tells whether err says that the policy is to be left out.
func IsSkip(err error) bool { return errors.Is(err, ErrSkip) }

const (
	msgOverLimit  = "operation cancelled: actual cost limit exceeded"
	msgOverBudget = "validation failed due to running out of cost budget, no further validation rules will be run"
	msgCancelled  = "operation cancelled: the request was cancelled or its deadline has passed"
)

// stop is what the lazy values panic with to leave cel-go's interpreter at once. An error value could be absorbed by
// '||' and '&&', and would let the loops around it run on.
type stop Cause

func (c stop) detail() string {
	switch Cause(c) {
	case OverLimit:
		return msgOverLimit
	case OverBudget:
		return msgOverBudget
	case Skipped:
		return ErrSkip.Error()
	default:
		return msgCancelled
	}
}

// errorOf turns what cel-go returned into an error, or nil when it is a value.
func errorOf(p *Program, v ref.Val) *Error {
	switch v := v.(type) {
	case *types.Err:
		return &Error{Cause: Failed, Expression: p.source, Detail: p.detail(v.Error())}
	case *types.Unknown:
		return &Error{Cause: Failed, Expression: p.source, Detail: p.detail("no value: " + v.String())}
	case nil:
		return &Error{Cause: Internal, Expression: p.source, Detail: "no result"}
	}
	return nil
}
