package telemetry

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPolicyCounters: decisions that are counted by the place of their policy are counted as by its
// name, also if there are more policies than series, and if the policy is of another set.
func TestPolicyCounters(t *testing.T) {
	names := []string{"a", "b", "a", "c"} // a mutator and a validator of one name
	for range maxNames {
		names = append(names, "many")
	}
	for i := range names[4:] {
		names[4+i] = string(rune('0'+i%10)) + string(rune('a'+i/10))
	}
	fast, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	counters := fast.PolicyCounters(names)
	verdicts := []string{"Allow", "Deny", "Error", "Unchanged"}
	for i := range 20_000 {
		place := r.IntN(4 + min(i/10, len(names)-4))
		policy, verdict, cost := names[place], verdicts[r.IntN(len(verdicts))], int64(r.IntN(3))
		switch r.IntN(20) {
		case 0:
			place, policy = len(names)+3, "elsewhere"
		case 1:
			policy = "elsewhere"
		}
		counters.Decided(place, policy, verdict, cost)
		slow.PolicyDecided(policy, verdict, cost)
	}
	for _, of := range []func(*Telemetry) []Tally{
		func(t *Telemetry) []Tally { return t.events.verdicts.tallies() },
		func(t *Telemetry) []Tally { return t.events.costs.tallies() },
	} {
		if got, want := of(fast), of(slow); !slices.Equal(got, want) || len(want) < maxNames {
			t.Errorf("%d and %d series differ", len(got), len(want))
		}
	}
}
