// Package cel compiles and evaluates CEL expressions over documents.
//
// The language is Kubernetes': its base environment, libraries and typing come
// from k8s.io/apiserver/pkg/cel and are used as they are when an expression is
// compiled. Evaluation is our own, in one of two ways that give the same values
// and errors:
//
//   - natively (package plan): the checked expression becomes closures over the
//     document's tape. Strings, numbers and places in a document travel in
//     registers; functions of libraries are called with cel-go's values.
//   - by cel-go's interpreter over lazy values (package value): for what
//     native plans do not cover, always the whole expression, but that members
//     of variables are followed natively (plan.Paths).
//
// In both ways nothing is decoded that no expression asks for.
//
// Package explain stands above: it says why a condition does not hold.
//
// # Use
//
// An expression is compiled once into a [Program], by [CompileRules] for the
// rules of a schema, by an [AdmissionCompiler] for policies or by a
// [RequestCompiler] for rate limits. A request takes a [Frame] from the pool,
// sets the variables in a [Vars], and hands both to the Program's Eval methods.
// How a Program runs is hidden behind those methods.
//
// # Cost
//
// Kubernetes' units and limits apply: one expression may use
// [ExpressionLimit] units, and what belongs together shares a budget, which
// [Frame.SetBudget] starts. Units are counted where the work is: a lazy value
// counts a unit for each member, item or variable it hands out and a tenth of a
// unit for each byte of a string. What those values cannot see (loops over
// lists that the expression itself made, functions whose work is more than what
// was counted for their arguments) is found in the checked expression when it
// is compiled, and only there a counting step is planned in; see plan.Meter.
// Native plans count the same, and each call, variable and round of a loop as
// Kubernetes does. What expressions make is counted in bytes too, and bounded.
// The static estimate is not used to refuse an expression.
//
// # Errors
//
// An evaluation that fails gives an [*Error], never false. Panics inside an
// evaluation become errors too.
package cel

import celconfig "k8s.io/apiserver/pkg/apis/cel"

// Limits, in units of cost, as Kubernetes has them.
const (
	// ExpressionLimit bounds one evaluation of one expression.
	ExpressionLimit int64 = celconfig.PerCallLimit
	// PolicyBudget is shared by all expressions of a policy for one binding and one parameter, and
	// by all rules of a schema for one object.
	PolicyBudget int64 = celconfig.RuntimeCELCostBudget
	// MatchConditionsBudget is shared by a policy's match conditions.
	MatchConditionsBudget int64 = celconfig.RuntimeCELCostBudgetMatchConditions
	// MaxMessageBytes is how long the result of a message expression may be.
	MaxMessageBytes = celconfig.MaxEvaluatedMessageExpressionSizeBytes
)
