package rego

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
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
	asked    uint
	ctx      context.Context
	deadline time.Time
	late     error // the cause if the deadline passes
	why      error
	meter    meter // asks for what is spent, for requests share it
	isHeavy  bool  // the evaluation has leave to do heavy work
}

// newBudget begins an evaluation, which ends at the request's deadline at the latest; the zero time
// is none. What it spends is asked of the memory, if there is one, and given back by its end.
func newBudget(ctx context.Context, left int64, until time.Time, m Memory) *budget {
	b := &budget{left: left, ctx: ctx, deadline: time.Now().Add(maxTime), late: errTime, meter: meter{memory: m}}
	for _, t := range []time.Time{until, deadlineOf(ctx)} {
		if !t.IsZero() && t.Before(b.deadline) {
			b.deadline, b.late = t, context.DeadlineExceeded
		}
	}
	return b
}

func deadlineOf(ctx context.Context) time.Time {
	t, _ := ctx.Deadline()
	return t
}

var _ topdown.Cancel = (*budget)(nil)

var (
	errBudget = errors.New("the policy's budget is used up")
	errTime   = fmt.Errorf("the policy took longer than %s", maxTime)
)

// asksBetweenLooks is how many steps are made between two looks at the clock.
const asksBetweenLooks = 256

// Cancel implements topdown.Cancel.
func (b *budget) Cancel() { b.left = -1 }

// Cancelled implements topdown.Cancel.
func (b *budget) Cancelled() bool {
	if !b.spend(stepCost) {
		return true
	}
	if b.asked++; b.asked%asksBetweenLooks != 1 {
		return b.why != nil
	}
	if err := b.ctx.Err(); err != nil {
		b.why = err
	} else if time.Now().After(b.deadline) {
		b.why = b.late
	}
	return b.why != nil
}

// spend takes from the budget; false if it is used up.
func (b *budget) spend(cost int64) bool {
	if b.why != nil {
		return false
	}
	if cost < 0 || cost > b.left {
		b.why = errBudget
		return false
	}
	b.left -= cost
	if !b.meter.take(cost) || b.meter.used > heavyBytes && !b.work() {
		b.why = ErrNoMemory
		return false
	}
	return true
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

// end gives back what the evaluation was granted.
func (b *budget) end() { b.meter.close() }
