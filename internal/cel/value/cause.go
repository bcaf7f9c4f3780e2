package value

// Cause is the way in which an evaluation failed.
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
	// Misfit: the expression has a value that cannot be used for its purpose, such
	// as a patch. Detail is the whole sentence.
	Misfit
	// Refused: the memory for what the expression makes, or leave to do much work, was
	// refused. That says nothing about the expression.
	Refused
)

// A Stop is the value with which lazy values panic, to leave cel-go's interpreter at once. An error
// value could be absorbed by '||' and '&&', and would let the loops around it run on.
type Stop Cause
