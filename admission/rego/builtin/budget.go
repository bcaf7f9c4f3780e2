// Package builtin has the contract of each of OPA's built-in functions: what a call may take by the
// size of its operands, and who keeps it to that.
//
// OPA asks whether to go on between the steps of an evaluation, and not within a function. So a
// function is asked for what it will take before it is called, or is one of this package, which
// asks as it works. One table says which; a function that it does not name is never called.
package builtin

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A Budget is how much an evaluation may still do, in about the bytes that it takes; a byte stands
// for some 20 ns of work, too.
type Budget interface {
	topdown.Cancel
	// Left is how much there is.
	Left() int64
	// Spend takes from it. It is false if there is not as much, or if the evaluation is over.
	Spend(cost int64) bool
	// Return gives back what was taken for memory that is free again.
	Return(cost int64)
}

// A need is what a call takes: memory until it ends, beside its value, and steps for good.
type need struct{ memory, steps int64 }

// An operands is what a function is called with, and what there is of the budget. An estimate may
// stop counting once it needs more than that.
type operands struct {
	left int64
	of   []*ast.Term
}

// text returns an operand that is a string; "" of any other.
func (o operands) text(i int) string { return textOf(o.of[i]) }

// len returns how long an operand is that is a string or a number.
func (o operands) len(i int) int64 { return length(o.of[i]) }

// lens returns how long all operands are.
func (o operands) lens() (sum int64) {
	for _, t := range o.of {
		sum += length(t)
	}
	return sum
}

// count returns how many members or bytes all operands have, without what is in the members.
func (o operands) count() (sum int64) {
	for _, t := range o.of {
		sum += int64(lenOf(t))
	}
	return sum
}

// deep returns about how many bytes an operand takes with all that is in it.
func (o operands) deep(i int) int64 { return sizeOf(o.of[i].Value, o.left, deepest) }

// errBudget is the error of a call that the budget does not allow for.
var errBudget = errors.New("the policy's budget is used up")

// halt ends the evaluation, because the budget is used up.
func halt(b Budget, at *ast.Location) error {
	b.Cancel()
	return topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: errBudget.Error(), Location: at}}
}

// A meter lets a function of this package ask as it works. It asks each time that it has gathered
// chunk, which is less than what the contract allows.
type meter struct {
	budget   Budget
	gathered int64
	spent    int64
	over     bool
}

// chunk is what is gathered before the budget is asked.
const chunk = 16 << 10

// take counts the next steps, and reports whether they may be done.
func (m *meter) take(cost int64) bool {
	if m.over {
		return false
	}
	if m.gathered = add(m.gathered, cost); m.gathered < chunk {
		return true
	}
	return m.ask()
}

// ask spends what was gathered.
func (m *meter) ask() bool {
	cost := m.gathered
	m.gathered = 0
	if !m.over {
		m.over = !m.budget.Spend(cost)
		m.spent += cost
	}
	return !m.over
}
