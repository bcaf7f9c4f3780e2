package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestExpectTogether: names that are expected at once have the counters that they get one by one, up to the bound and beyond it.
func TestExpectTogether(t *testing.T) {
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("policy-%d", i%(maxNames+7)))
		}
		return all
	}
	for _, n := range []int{0, 1, 10, maxNames - 1, maxNames, maxNames + 1, maxNames + 20} {
		var together, alone named
		for _, c := range []*named{&together, &alone} {
			c.add("before", "reason")
		}
		together.expect(names(n))
		for _, name := range names(n) {
			alone.addSome(name, "", 0)
		}
		got, want := slices.Collect(maps.Keys(together.known.values())), slices.Collect(maps.Keys(alone.known.values()))
		if len(got) != len(want) {
			t.Errorf("%d names have %d counters, want %d", n, len(got), len(want))
		}
		for _, k := range want {
			if together.known.values()[k] == nil {
				t.Errorf("of %d names %q has no counter", n, k)
			}
		}
		if together.known.values()[[3]string{"before", "reason"}].Load() != 1 {
			t.Error("what was counted before is lost")
		}
	}
}
