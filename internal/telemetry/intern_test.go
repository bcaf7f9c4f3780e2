package telemetry

import (
	"fmt"
	"maps"
	"testing"
)

// TestExpectTogether: names that are expected at once have the counters that they get one by one, up to the bound and
// beyond it.
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
		got, want := maps.Collect(together.known.all()), maps.Collect(alone.known.all())
		if len(got) != len(want) {
			t.Errorf("%d names have %d counters, want %d", n, len(got), len(want))
		}
		for k := range want {
			if got[k] == nil {
				t.Errorf("of %d names %q has no counter", n, k)
			}
		}
		if got[[3]string{"before", "reason"}].Load() != 1 {
			t.Error("what was counted before is lost")
		}
	}
}

// TestInternAll: of names that come one by one none is lost, and none beyond the bound is added.
func TestInternAll(t *testing.T) {
	const most = 3*maxRecent + 5
	var names intern[int, int]
	number := func(k int) (int, *int) { return k, &k }
	for k := range most + 10 {
		if v := names.get(k, most, number); (v != nil) != (k < most) {
			t.Fatalf("%d is %v", k, v)
		}
		for before := range min(k, most) {
			if v := names.get(before, most, number); v == nil || *v != before {
				t.Fatalf("after %d came %d is %v", k, before, v)
			}
		}
	}
	if all := maps.Collect(names.all()); len(all) != most {
		t.Errorf("%d names", len(all))
	}
}
