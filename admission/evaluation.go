package admission

import "time"

// A JSON is a value that has a form in JSON.
type JSON interface {
	// AppendJSON appends it.
	AppendJSON(dst []byte) ([]byte, error)
}

// An Evaluation says how the rules of a policy, or a constraint, decided about a request.
type Evaluation struct {
	// Kind is the kind of the policy, such as RegoPolicy, and Engine the language of its rules.
	Kind, Engine string
	// Policy and Binding are named as in denials.
	Policy, Binding string
	// Path is the rule, such as tickets/deny; empty if it has none.
	Path string
	// Bundle is the bundle that the rule comes from, and Revision the version of that; empty if it comes
	// from none.
	Bundle, Revision string
	// Input has all that the rule saw of the request, and Result is its value; nil for none.
	Input, Result JSON
	// Erased are the parts of the input and the result that are left out, such as /input/review/object.
	Erased []string
	// Violations is how many violations there are, and Actions what they lead to.
	Violations int
	Actions    []string
	// Code and Failure say why there is no result; empty if there is one.
	Code, Failure string
	// Began is when the evaluation began, and Took how long it took.
	Began time.Time
	Took  time.Duration
}

// A DecisionLogger logs evaluations. It keeps no reference to what is in one.
type DecisionLogger interface {
	LogDecision(e *Evaluation)
}
