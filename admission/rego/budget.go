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
}

// newBudget begins an evaluation, which ends at the request's deadline at the latest; the zero time
// is none.
func newBudget(ctx context.Context, left int64, until time.Time) *budget {
	b := &budget{left: left, ctx: ctx, deadline: time.Now().Add(maxTime), late: errTime}
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
	return true
}
