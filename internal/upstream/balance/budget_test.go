package balance

import (
	"math/rand/v2"
	"testing"
	"time"
)

// In no span of time are there more retries than the budget's documentation says.
func TestRetryBudget(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := budget{RetryBudget: RetryBudget{Percent: r.IntN(40), PerSecond: r.IntN(20)}}
		now := time.Unix(1_700_000_000, 0)
		type moment struct {
			at                time.Time
			requests, retries int
		}
		history := []moment{{at: now}}
		total := history[0]
		for range 2000 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(20*time.Millisecond)))
			for range r.IntN(5) {
				b.deposit()
				total.requests++
				if r.IntN(3) > 0 && b.withdraw(now) {
					total.retries++
				}
			}
			total.at = now
			for _, from := range history {
				span := now.Sub(from.at).Seconds()
				most := MaxSaved + float64((total.requests-from.requests)*b.Percent)/100 +
					(span+1)*float64(b.PerSecond) + 1e-6
				if n := total.retries - from.retries; float64(n) > most {
					t.Fatalf("seed %d: %d retries in %.3f s with %d requests, which allow %.2f", seed, n, span,
						total.requests-from.requests, most)
				}
			}
			if r.IntN(20) == 0 {
				history = append(history, total)
			}
		}
	}
}

func TestRetryBudgetGives(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	count := func(b *budget) (n int) {
		for b.withdraw(now) {
			n++
		}
		return n
	}
	none := budget{}
	for range 1000 {
		none.deposit()
	}
	if n := count(&none); n != 0 {
		t.Errorf("an empty budget gives %d retries", n)
	}
	share := budget{RetryBudget: RetryBudget{Percent: 20}}
	for range 50 {
		share.deposit()
	}
	if n := count(&share); n != 10 {
		t.Errorf("20 percent of 50 requests are %d retries", n)
	}
	rate := budget{RetryBudget: RetryBudget{PerSecond: 10}}
	if n := count(&rate); n != 10 {
		t.Errorf("10 in a second are %d at once", n)
	}
	now = now.Add(500 * time.Millisecond)
	if n := count(&rate); n != 5 {
		t.Errorf("10 in a second are %d after half a second", n)
	}
}
