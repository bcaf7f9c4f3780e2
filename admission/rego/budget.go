package rego

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// DefaultBudget is how much one evaluation may do: a step costs stepCost, and what a built-in
// function makes costs about the bytes that it takes. So the budget bounds the memory too.
const DefaultBudget = 64 << 20

// stepCost is more than what a step of an evaluation keeps on the average.
const stepCost = 64

// maxTime is how long one evaluation may take, whatever the request's deadline.
const maxTime = 5 * time.Second

// A budget ends an evaluation that did enough, or whose request is over. OPA asks it before each
// step. It belongs to one goroutine.
type budget struct {
	left     int64
	unseen   int64 // was spent since the last look at the clock
	ctx      context.Context
	deadline time.Time
	late     error // the cause if the deadline passes
	why      error
	meter    meter // asks for what is spent, for requests share it
	isHeavy  bool  // the evaluation has leave to do heavy work
}

// newBudget begins an evaluation, which ends at the request's deadline at the latest; the zero time
// sets no deadline. What it spends is asked of the memory, if there is one, and given back by its
// end.
func newBudget(ctx context.Context, left int64, until time.Time, m Memory) *budget {
	b := new(budget)
	b.begin(ctx, left, until, m)
	return b
}

// begin is newBudget in place.
func (b *budget) begin(ctx context.Context, left int64, until time.Time, m Memory) {
	*b = budget{left: left, unseen: lookEach, ctx: ctx, deadline: time.Now().Add(maxTime), late: errTime,
		meter: meter{memory: m}}
	for _, t := range []time.Time{until, deadlineOf(ctx)} {
		if !t.IsZero() && t.Before(b.deadline) {
			b.deadline, b.late = t, context.DeadlineExceeded
		}
	}
}

func deadlineOf(ctx context.Context) time.Time {
	t, _ := ctx.Deadline()
	return t
}

var _ builtin.Budget = (*budget)(nil)

var (
	errBudget = errors.New("the policy's budget is used up")
	errTime   = fmt.Errorf("the policy took longer than %s", maxTime)
)

// lookEach is how much is spent between two looks at the clock: 64 64 steps, and each may compare
// values of a few megabytes.
const lookEach = 64 * stepCost

// Cancel implements topdown.Cancel.
func (b *budget) Cancel() {
	if b.why == nil {
		b.why = errBudget
	}
}

// Cancelled implements topdown.Cancel.
func (b *budget) Cancelled() bool {
	isPlain := b.why == nil && b.left >= stepCost && b.unseen < lookEach-stepCost &&
		b.meter.has(stepCost) && b.meter.used < heavyBytes-stepCost
	if !isPlain {
		return !b.Spend(stepCost)
	}
	b.left -= stepCost
	b.unseen += stepCost
	b.meter.used += stepCost
	return false
}

// Left implements builtin.Budget.
func (b *budget) Left() int64 { return b.left }

// Spend implements builtin.Budget.
func (b *budget) Spend(cost int64) bool {
	if b.why != nil {
		return false
	}
	if cost < 0 || cost > b.left {
		b.why = errBudget
		return false
	}
	b.left -= cost
	b.unseen += min(cost, lookEach)
	if b.unseen >= lookEach && b.isOver() {
		return false
	}
	if !b.meter.take(cost) || b.meter.used > heavyBytes && !b.work() {
		b.why = ErrNoMemory
		return false
	}
	return true
}

// isOver looks at the request and the clock.
func (b *budget) isOver() bool {
	b.unseen = 0
	if err := b.ctx.Err(); err != nil {
		b.why = err
	} else if time.Now().After(b.deadline) {
		b.why = b.late
	}
	return b.why != nil
}

// Return implements builtin.Budget.
func (b *budget) Return(cost int64) {
	b.left += cost
	b.meter.give(cost)
}

// work waits until the evaluation is one of the few that may do heavy work, and reports whether it
// is. The time is not the policy's.
func (b *budget) work() bool {
	if b.isHeavy || b.meter.memory == nil {
		return true
	}
	begin := time.Now()
	if !b.meter.memory.Work() {
		return false
	}
	b.isHeavy = true
	if b.late == errTime {
		b.deadline = b.deadline.Add(time.Since(begin))
	}
	return true
}

// Spent implements plan.Cancel.
func (b *budget) Spent() int64 { return b.meter.used }

// end gives back what the evaluation was granted.
func (b *budget) end() { b.meter.close() }
