package balance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// slowStart is the time that a slow start takes in tests.
const slowStart = 100 * time.Second

// newSlowSet is a set whose choices are the same in each run. An endpoint is ejected by its first failure, for a
// second.
func newSlowSet(slowStart time.Duration, addrs ...string) *Set[none] {
	s := newTestSet(Policy{
		SlowStart: slowStart, Health: Thresholds{Unhealthy: 1, Healthy: 1},
		Ejection: Ejection{Failures: 1, Base: time.Second, Max: time.Second, Percent: 100},
	}, addrs...)
	s.random = 1
	return s
}

// shares returns the percentage of the requests that each endpoint gets while so many are in flight, all of which take
// equally long.
func shares(s *Set[none], inFlight int) []float64 {
	const requests = 40_000
	r := rand.New(rand.NewPCG(1, 1))
	counts := make(map[*Endpoint[none]]float64)
	var open []*Endpoint[none]
	for i := range requests + 10*inFlight {
		if len(open) >= inFlight {
			at := r.IntN(len(open))
			open[at].Busy--
			open[at], open = open[len(open)-1], open[:len(open)-1]
		}
		e := s.Choose(&FailedEndpoints[none]{})
		e.Busy++
		open = append(open, e)
		if i >= 10*inFlight { // the start is over
			counts[e] += 100.0 / requests
		}
	}
	for _, e := range open {
		e.Busy--
	}
	var all []float64
	for _, e := range s.All() {
		all = append(all, counts[e])
	}
	return all
}

// back ejects endpoints and has them come back at a time.
func back(s *Set[none], at time.Time, endpoints ...int) {
	for _, i := range endpoints {
		s.Observe(s.all[i], Failed, at.Add(-time.Second))
	}
	s.Refresh(at)
}

// The share of each endpoint, in percent, at times after the start of the test, in seconds. Requests that follow one
// another, and many that are in flight at once, are shared by weight. With a few in flight an endpoint in its slow
// start gets less, and hardly ever more.
func TestSlowStartShares(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	type step struct {
		at   int
		do   func(s *Set[none], now time.Time)
		want []float64
	}
	name := &Origin{Position: 9, Authority: "name:80"}
	unhealthy := errors.New("503")
	for title, c := range map[string]struct {
		slowStart time.Duration
		addrs     string
		steps     []step
	}{
		"all are new at the start of the process": {slowStart, "a b c", []step{
			{0, nil, []float64{33.3, 33.3, 33.3}},
		}},
		"off: ejected": {0, "a b", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0) }, []float64{50, 50}},
		}},
		"ejected": {slowStart, "a b c", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0) }, []float64{4.76, 47.6, 47.6}}, // 10 of 210
			{26, nil, []float64{13.98, 43.0, 43.0}},                                                 // 32.5 of 232.5
			{51, nil, []float64{21.57, 39.2, 39.2}},                                                 // 55 of 255
			{76, nil, []float64{27.93, 36.0, 36.0}},                                                 // 77.5 of 277.5
			{100, nil, []float64{33.1, 33.4, 33.4}},
			{101, nil, []float64{33.3, 33.3, 33.3}},
			{1000, nil, []float64{33.3, 33.3, 33.3}},
		}},
		"ejected, and asked again only long after": {slowStart, "a b", []step{
			{1, func(s *Set[none], now time.Time) { s.Observe(s.all[0], Failed, now) }, []float64{0, 100}},
			{1000, nil, []float64{9.09, 90.9}},
			{1050, nil, []float64{35.5, 64.5}},
		}},
		"unhealthy": {slowStart, "a b", []step{
			{0, func(s *Set[none], now time.Time) { s.Check(s.all[1], unhealthy, now) }, []float64{100, 0}},
			{10, func(s *Set[none], now time.Time) { s.Check(s.all[1], nil, now) }, []float64{90.9, 9.09}},
			{60, func(s *Set[none], now time.Time) { s.Check(s.all[1], nil, now) }, []float64{64.5, 35.5}}, // goes on
			{110, nil, []float64{50, 50}},
		}},
		"ejected and unhealthy: it begins when neither is left": {slowStart, "a b", []step{
			{0, func(s *Set[none], now time.Time) {
				s.Check(s.all[0], unhealthy, now)
				s.Check(s.all[0], nil, now)
				s.Observe(s.all[0], Failed, now)
				s.Check(s.all[0], unhealthy, now)
			}, []float64{0, 100}},
			{50, nil, []float64{0, 100}},
			{100, func(s *Set[none], now time.Time) { s.Check(s.all[0], nil, now) }, []float64{9.09, 90.9}},
		}},
		"one is added to a name": {slowStart, "", []step{
			{0, func(s *Set[none], now time.Time) { s.Replace(name, []string{"a"}, now) }, []float64{100}},
			{500, func(s *Set[none], now time.Time) {
				name.Asked = true
				s.Replace(name, []string{"a", "b"}, now)
			}, []float64{90.9, 9.09}},
			// goes on
			{550, func(s *Set[none], now time.Time) { s.Replace(name, []string{"a", "b"}, now) },
				[]float64{64.5, 35.5}},
			{575, func(s *Set[none], now time.Time) { s.Replace(name, []string{"b", "a", "c"}, now) },
				[]float64{41.3, 53.3, 5.33}},
			{600, func(s *Set[none], now time.Time) { s.Replace(name, []string{"b", "a"}, now) }, []float64{50, 50}},
		}},
		"all at once: shares are relative": {slowStart, "a b c", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0, 1, 2) }, []float64{33.3, 33.3, 33.3}},
			{51, nil, []float64{33.3, 33.3, 33.3}},
			{101, nil, []float64{33.3, 33.3, 33.3}},
		}},
		"one after the other": {slowStart, "a b c", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0) }, []float64{4.76, 47.6, 47.6}},
			{51, func(s *Set[none], now time.Time) { back(s, now, 1) }, []float64{33.3, 6.06, 60.6}}, // 55, 10 and 100
			{101, nil, []float64{39.2, 21.57, 39.2}},
			{151, nil, []float64{33.3, 33.3, 33.3}},
		}},
		"one alone": {slowStart, "a b", []step{
			{1, func(s *Set[none], now time.Time) {
				s.Check(s.all[1], unhealthy, now)
				s.Check(s.all[0], unhealthy, now)
				s.Check(s.all[0], nil, now)
			}, []float64{100, 0}},
			{51, nil, []float64{100, 0}},
		}},
		"all are passed over: all are asked": {slowStart, "a b", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0) }, []float64{9.09, 90.9}},
			{51, func(s *Set[none], now time.Time) {
				s.Observe(s.all[0], Failed, now)
				s.Observe(s.all[1], Failed, now)
			}, []float64{50, 50}},
		}},
		"it fails again in its slow start": {slowStart, "a b", []step{
			{1, func(s *Set[none], now time.Time) { back(s, now, 0) }, []float64{9.09, 90.9}},
			{51, func(s *Set[none], now time.Time) { s.Observe(s.all[0], Failed, now) }, []float64{0, 100}},
			{52, nil, []float64{9.09, 90.9}},
			{102, nil, []float64{35.5, 64.5}},
			{110, func(s *Set[none], now time.Time) { s.Check(s.all[0], unhealthy, now) }, []float64{0, 100}},
			{120, func(s *Set[none], now time.Time) { s.Check(s.all[0], nil, now) }, []float64{9.09, 90.9}},
			{220, nil, []float64{50, 50}},
		}},
	} {
		t.Run(title, func(t *testing.T) {
			name.Asked = false
			s := newSlowSet(c.slowStart, strings.Fields(c.addrs)...)
			for _, step := range c.steps {
				now := after(step.at)
				if step.do != nil {
					step.do(s, now)
				}
				s.Refresh(now)
				for _, inFlight := range []int{1, 2, 5, 20, 100, 1000} {
					got := shares(s, inFlight)
					for i, want := range step.want {
						low, high := want-1, want+1
						if inFlight > 1 && inFlight < 100 { // an endpoint has a whole number of them
							low, high = 0.6*want-1, 1.1*want+1
							if want == slices.Max(step.want) {
								continue
							}
						}
						if got[i] < low || got[i] > high {
							t.Errorf("after %d s, with %d in flight, the shares are %.1f, not %.1f", step.at, inFlight,
								got, step.want)
							break
						}
					}
				}
			}
		})
	}
}

// A set that replaces another one goes on with its slow starts, also if they take another time now.
func TestSlowStartContinues(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	before := newSlowSet(slowStart, "full", "slow", "ejected", "unhealthy")
	back(before, now, 1)
	now = now.Add(slowStart / 2)
	before.Observe(before.all[2], Failed, now)
	before.Check(before.all[3], errors.New("503"), now)
	for name, c := range map[string]struct {
		slowStart time.Duration
		starts    Starts
		want      []int
	}{
		"the same":           {slowStart, before.Starts(), []int{1000, 550, 100, 100, 100}},
		"twice as long":      {2 * slowStart, before.Starts(), []int{1000, 325, 100, 100, 100}},
		"half as long":       {slowStart / 2, before.Starts(), []int{1000, 1000, 100, 100, 100}},
		"no more":            {0, before.Starts(), []int{1000, 1000, 1000, 1000, 1000}},
		"there was none":     {slowStart, nil, []int{1000, 1000, 1000, 1000, 1000}},
		"none of it is left": {slowStart, Starts{"other": now}, []int{100, 100, 100, 100, 100}},
	} {
		s := newSlowSet(c.slowStart)
		s.Continue(c.starts)
		s.Replace(&Origin{}, []string{"full", "slow", "ejected", "unhealthy", "new"}, now)
		var got []int
		for _, e := range s.all {
			got = append(got, e.weight)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the weights are %v, not %v", name, got, c.want)
		}
	}
}

// A request that failed elsewhere, or finds no room at both endpoints that were drawn, goes where there are the fewest
// exchanges for the weight.
func TestSlowStartOfLeastBusy(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		seconds int // since a came back
		busy    [3]int
		want    string
	}{
		{0, [3]int{0, 0, 0}, "b"},
		{0, [3]int{0, 8, 8}, "b"},
		{0, [3]int{0, 10, 11}, "a"},
		{0, [3]int{1, 10, 11}, "b"},
		{50, [3]int{0, 0, 0}, "b"},
		{50, [3]int{0, 1, 2}, "a"},
		{50, [3]int{5, 9, 10}, "b"},
		{50, [3]int{5, 10, 10}, "a"},
		{100, [3]int{0, 0, 0}, "a"},
		{100, [3]int{2, 2, 1}, "c"},
	} {
		s := newSlowSet(slowStart, "a", "b", "c", "d")
		back(s, now, 0)
		s.Refresh(now.Add(time.Duration(c.seconds) * time.Second))
		for i, busy := range c.busy {
			s.all[i].Busy = busy
		}
		var tried FailedEndpoints[none]
		tried.Add(s.all[3])
		if got := s.Choose(&tried); got.Addr != c.want {
			t.Errorf("after %d s, with %v in flight, %s is chosen, not %s", c.seconds, c.busy, got.Addr, c.want)
		}
		s.hasRoom = func(e *Endpoint[none]) bool { return e == s.all[1] }
		if got := s.Choose(&FailedEndpoints[none]{}); got.Addr != "b" {
			t.Errorf("%s is chosen, but only b has room", got.Addr)
		}
	}
}

// Only a set with an endpoint in its slow start has anything to do for it, and a choice allocates nothing.
func TestSlowStartCosts(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := newSlowSet(slowStart, "a", "b", "c")
	if !s.due.IsZero() || s.weight != 0 {
		t.Errorf("at the start of the process, rebuild is due at %v, and the weight is %d", s.due, s.weight)
	}
	back(s, now, 0)
	rebuilt := 0
	for at := range 2 * int(slowStart/(10*time.Millisecond)) {
		if s.Refresh(now.Add(time.Duration(at) * 10 * time.Millisecond)) {
			rebuilt++
		}
	}
	if rebuilt != rampSteps || !s.due.IsZero() || s.weight != 0 {
		t.Errorf("the weights changed %d times; rebuild is due at %v, and the weight is %d", rebuilt, s.due, s.weight)
	}
	back(s, now.Add(time.Hour), 0)
	if n := testing.AllocsPerRun(100, func() { s.Choose(&FailedEndpoints[none]{}) }); n != 0 || s.weight == 0 {
		t.Errorf("a choice allocates %.0f times", n)
	}
}

// Whatever happens, the weight of the set is the sum of those of its endpoints, and every endpoint that is ready is
// chosen.
func TestSlowStartUnderRandomChanges(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := newSlowSet(time.Duration(1+r.IntN(20))*time.Second, "a", "b")
		s.policy.Ejection.Percent = 1 + r.IntN(100)
		name := &Origin{Position: 9, Authority: "name:80", Asked: true}
		now := time.Unix(1_700_000_000, 0)
		for step := range 300 {
			// requests do not come in the order of their starts
			now = now.Add(time.Duration(r.IntN(2000)-50) * time.Millisecond)
			e := s.all[r.IntN(len(s.all))]
			switch r.IntN(5) {
			case 0:
				s.Observe(e, Failed, now)
			case 1:
				s.Check(e, errors.New("503"), now)
			case 2:
				s.Check(e, nil, now)
			case 3:
				s.Replace(name, strings.Fields("c d e f")[:r.IntN(5)], now)
			case 4:
				s.Refresh(now)
			}
			sum, isRamping := 0, false
			for _, e := range s.ready {
				if e.weight < leastWeight || e.weight > fullWeight || e.since.IsZero() != (e.weight == fullWeight) {
					t.Fatalf("seed %d, step %d: the weight of %s is %d, %v after %v", seed, step, e.Addr, e.weight, now,
						e.since)
				}
				sum, isRamping = sum+e.weight, isRamping || !e.since.IsZero()
			}
			if want := map[bool]int{true: sum}[isRamping]; s.weight != want {
				t.Fatalf("seed %d, step %d: the weight is %d, not %d", seed, step, s.weight, want)
			}
			if isRamping && s.due.IsZero() {
				t.Fatalf("seed %d, step %d: no change of weights is due", seed, step)
			}
			chosen := make(map[*Endpoint[none]]bool)
			for range 300 {
				chosen[s.Choose(&FailedEndpoints[none]{})] = true
			}
			for _, e := range s.ready {
				if !chosen[e] && len(s.ready) <= 2 {
					t.Fatalf("seed %d, step %d: %s with the weight %d was never chosen", seed, step, e.Addr, e.weight)
				}
			}
		}
	}
}
