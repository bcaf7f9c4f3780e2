package cel

import (
	"errors"
	"fmt"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// An Error says why an evaluation has no result.
type Error struct {
	Cause value.Cause
	// Expression is the source of the expression.
	Expression string
	// Detail says what went wrong, as cel-go words it: 'no such key: size'.
	Detail string
}

// Error gives the sentence that kube-apiserver's admission gives.
func (e *Error) Error() string {
	switch e.Cause {
	case value.OverBudget, value.Cancelled, value.Skipped, value.Misfit, value.Refused:
		return e.Detail
	default:
		return fmt.Sprintf("expression '%s' resulted in error: %s", e.Expression, e.Detail)
	}
}

// Fatal reports whether evaluating anything else for the same object would be in
// vain.
func (e *Error) Fatal() bool {
	return e.Cause == value.OverBudget || e.Cause == value.Cancelled || e.Cause == value.Skipped ||
		e.Cause == value.Refused
}

// Is implements the interface of errors.Is.
func (e *Error) Is(target error) bool { return target == ErrSkip && e.Cause == value.Skipped }

// IsSkip reports whether err says that the policy is to be left out.
func IsSkip(err error) bool { return err != nil && errors.Is(err, ErrSkip) }

const (
	msgOverLimit  = "operation cancelled: actual cost limit exceeded"
	msgOverBudget = "validation failed due to running out of cost budget, no further validation rules will be run"
	msgCancelled  = "operation cancelled: the request was cancelled or its deadline has passed"
	msgRefused    = "operation cancelled: there is no memory, or no time, for it now"
)

// detailOf words the cause of a panic.
func detailOf(c value.Stop) string {
	switch value.Cause(c) {
	case value.OverLimit:
		return msgOverLimit
	case value.OverBudget:
		return msgOverBudget
	case value.Skipped:
		return ErrSkip.Error()
	case value.Refused:
		return msgRefused
	default:
		return msgCancelled
	}
}
