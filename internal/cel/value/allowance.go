package value

import (
	"context"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// An Allowance says what the running expression, and all of a request, may still use: units of
// cost, time and memory.
type Allowance struct {
	// What the running expression may still use. Below next the clock and the context are looked at; see charge.
	left, next int64
	limit      int64 // what left was when the budget was last charged
	shared     bool  // the limit is the rest of the budget, less than the expression's own limit
	budget     int64 // what all expressions may still use, as of the last charge
	until      int64 // units from limit to the next look
	spent      int64 // by all expressions so far

	done     <-chan struct{}
	deadline time.Time

	made int  // bytes of what was made; see Take
	Bill bill // of the request whose evaluations these are
}

// Start begins the evaluations of a request.
func (a *Allowance) Start(ctx context.Context, budget int64) {
	a.done = ctx.Done()
	a.deadline, _ = ctx.Deadline()
	a.budget = budget
	a.until = checkInterval
}

// Release gives back what was granted to the request.
func (a *Allowance) Release() {
	a.done = nil
	a.Bill.close()
}

// Retire forgets the strings that functions made, when no evaluation runs.
func (a *Allowance) Retire() { a.Bill.Text = 0 }

// Running says what an evaluation was allowed before one within it began.
type Running struct {
	left   int64
	shared bool
}

// Running returns what the running evaluation is allowed.
func (a *Allowance) Running() Running { return Running{a.left, a.shared} }

// Resume lets an evaluation go on after one within it.
func (a *Allowance) Resume(r Running) {
	a.Allow(r.left)
	a.shared = a.shared || r.shared
}

// Share lets what runs until restore use a part of the budget.
func (a *Allowance) Share(units int64) (restore func()) {
	budget := a.budget
	a.budget = min(budget, units)
	given := a.budget
	return func() { a.budget = budget - (given - a.budget) }
}

// checkInterval is how many units pass between two looks at the clock and the context.
const checkInterval = 100

// SetDeadline makes evaluations end when the time has passed. The zero time
// means that there is no deadline but the context's.
func (a *Allowance) SetDeadline(t time.Time) { a.deadline = t }

// Deadline is when evaluations end; the zero time if there is none.
func (a *Allowance) Deadline() time.Time { return a.deadline }

// Spent returns how many units all expressions have used so far.
func (a *Allowance) Spent() int64 { return a.spent }

// SetBudget starts a new shared budget of so many units.
func (a *Allowance) SetBudget(units int64) { a.budget = units }

// Budget returns the rest of the shared budget, in units; it is never negative.
func (a *Allowance) Budget() int64 { return max(a.budget, 0) }

// Charge counts units of cost. It does not return when there are none left or
// the request is over.
func (a *Allowance) Charge(units int64) {
	a.left -= units
	if a.left < a.next {
		a.look()
	}
}

func (a *Allowance) look() {
	if a.left < 0 {
		// What exceeds the limit is refused before it is done, and is no cost. The budget loses what was allowed, at
		// most.
		a.left = 0
		if a.shared {
			panic(Stop(OverBudget))
		}
		panic(Stop(OverLimit))
	}
	a.ChargeBudget()
	a.until = checkInterval
	a.next = max(a.left-a.until, 0)
	if a.over() {
		panic(Stop(Cancelled))
	}
	if a.Bill.spent > heavyUnits {
		a.Bill.work()
	}
}

// MadeLimit is how many bytes the values that an evaluation makes, and the values of the variables
// that it reads, may take. Units alone bound them too, but not as closely: functions that make
// lists of short strings cost little.
const MadeLimit = 16 << 20

// over reports whether the request is over.
func (a *Allowance) over() bool {
	select {
	case <-a.done:
		return true
	default:
	}
	return !a.deadline.IsZero() && !time.Now().Before(a.deadline)
}

// ChargeBudget deducts from the budget what the running expression has used.
func (a *Allowance) ChargeBudget() {
	used := a.limit - a.left
	a.Bill.spent += used
	a.spent += used
	a.budget -= used
	a.until -= used
	a.limit = a.left
}

// Allow lets the running expression use so many units, or what the budget has.
func (a *Allowance) Allow(units int64) {
	a.shared = a.budget < units
	a.left = max(min(units, a.budget), 0)
	a.limit = a.left
	a.next = max(a.left-a.until, 0)
}

// Take counts bytes of what an expression makes.
func (a *Allowance) Take(bytes int) {
	if a.made += bytes; a.made > MadeLimit {
		panic(Stop(OverLimit))
	}
	if a.made > a.Bill.granted {
		a.Bill.grow(a.made)
	}
}

// MakeRoom asks for bytes besides what is held.
func (a *Allowance) MakeRoom(bytes int) {
	if need := a.made + a.Bill.Text + bytes; need > a.Bill.granted {
		a.Bill.grow(need)
	}
}

// SetMemory sets the bound of the memory that evaluations take, up to Release. If that is refused
// they end with an [Error] of cause Refused.
func (a *Allowance) SetMemory(m Memory) {
	a.Bill.close()
	a.Bill = bill{memory: m, granted: grantFree}
}

// Memory is the argument of the last SetMemory, up to Release; nil if there was none.
func (a *Allowance) Memory() Memory { return a.Bill.memory }

// MadeText counts a string that a function made.
func (a *Allowance) MadeText(bytes int) {
	if bytes <= ShortText {
		return
	}
	if a.Bill.Text += bytes; a.made+a.Bill.Text > a.Bill.granted {
		a.Bill.grow(a.made + a.Bill.Text)
	}
}

// CountText is madeText for a value that may be a string.
func (a *Allowance) CountText(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		a.MadeText(len(v))
	case types.Bytes:
		a.MadeText(len(v))
	}
}
