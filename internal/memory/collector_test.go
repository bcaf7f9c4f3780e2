package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// percent returns GOGC.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

// GOGC is another one until all who spare memory are done, unless it is low or off already.
func TestSpare(t *testing.T) {
	defer debug.SetGCPercent(percent())
	for _, test := range []struct {
		before  int
		isPaced bool
	}{{100, true}, {400, true}, {20, false}, {-1, false}} {
		debug.SetGCPercent(test.before)
		first, second := Spare(), Spare()
		one := percent()
		first()
		first() // which does nothing more
		two := percent()
		second()
		if after := percent(); after != test.before {
			t.Errorf("GOGC %d becomes %d", test.before, after)
		}
		if test.isPaced != (one != test.before) || test.isPaced != (two != test.before) {
			t.Errorf("GOGC %d is %d and %d while memory is spared", test.before, one, two)
		}
	}
}

// A heap may grow to a size that is fixed, and a larger one by half.
func TestPercentFor(t *testing.T) {
	for _, test := range []struct {
		live, scanned uint64
		want          int
	}{
		{32 << 20, 0, 99},
		{20 << 20, 3 << 20, 191},
		{40 << 20, 0, 59},
		{64 << 20, 0, 50},
		{95 << 20, 0, 50},
		{sparingHeap, 0, 50},
		{1 << 30, 5 << 20, 50},
		{0, 0, 200},
	} {
		if got := percentFor(test.live, test.scanned); got != test.want {
			t.Errorf("of %d and %d bytes GOGC becomes %d, want %d", test.live, test.scanned, got, test.want)
		}
	}
}

// TestPace: while memory is spared, the goal of the collector follows what is alive.
func TestPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	goal := func() int {
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return int(sample[0].Value.Uint64() >> 20)
	}
	done := Spare()
	for _, test := range []struct{ alive, least, most int }{{30, 60, 70}, {200, 300, 320}, {40, 60, 70}} {
		ballast := make([]byte, test.alive<<20)
		runtime.GC()
		Pace()
		if got := goal(); got < test.least || got > test.most {
			t.Errorf("a heap of %d MB may grow to %d MB, want %d to %d", test.alive, got, test.least, test.most)
		}
		runtime.KeepAlive(ballast)
	}
	done()
	Pace() // which does nothing more
	if after := percent(); after != 100 {
		t.Errorf("GOGC is %d afterwards, want 100", after)
	}
}

// TestWatch: the goal follows what is alive though Pace is not called.
func TestWatch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer Spare()()
	ballast := make([]byte, 200<<20)
	runtime.GC()
	for percent() != sparingPercent { // until the cleanup has run
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(ballast)
}
