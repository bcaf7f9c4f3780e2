package value

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// TestChargesTakeWhatWasAllowed charges random costs, the largest among them: the budget loses what the expression was
// allowed, at most, and every count stays in its bounds.
func TestChargesTakeWhatWasAllowed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 43))
	costs := []int64{0, 1, 99, 100, 1000, 999_999, 1_000_000, 1_000_001, math.MaxInt32, math.MaxInt64 - 1,
		math.MaxInt64}
	for range 2000 {
		var a Allowance
		budget := random.Int64N(5_000_000)
		a.Start(context.Background(), budget)
		for range 8 {
			limit := []int64{10, 1000, 1_000_000}[random.IntN(3)]
			before, spent := a.Budget(), a.Spent()
			cause := Cause(0)
			var done int64
			func() {
				defer func() {
					if stop, is := recover().(Stop); is {
						cause = Cause(stop)
					}
				}()
				a.Allow(limit)
				for range 1 + random.IntN(6) {
					cost := costs[random.IntN(len(costs))]
					a.Charge(cost)
					done += cost
				}
			}()
			a.ChargeBudget()
			used := before - a.Budget()
			allowed := min(limit, before)
			want := done
			if cause != 0 {
				want = allowed
			}
			if used != want || used < 0 || used > allowed || a.Spent()-spent != used || a.Bill.spent < 0 {
				t.Fatalf("of %d allowed units %d are used, %d are taken from the budget, and %d are counted as spent; %v", allowed, want, used, a.Spent()-spent, cause)
			}
			if over := map[bool]Cause{false: OverLimit, true: OverBudget}[before < limit]; cause != 0 && cause != over {
				t.Fatalf("the cause is %v, want %v", cause, over)
			}
		}
	}
}
