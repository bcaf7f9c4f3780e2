package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// sparingPercent is GOGC while memory is spared, once the heap is large.
	sparingPercent = 50
	// sparingHeap is how large the heap may become before that, in bytes, whatever part of it is garbage. The collector
	// marks all that is alive each time it runs: to run it often while the heap grows to this size would not lower the
	// peak.
	sparingHeap = 64 << 20
	// largestPercent is GOGC at most: it counts for one collection more if the heap is large by then and no call of
	// Pace has come between.
	largestPercent = 200
)

var sparing struct {
	sync.Mutex
	count     int // of the calls of Spare that are not over
	before    int // GOGC otherwise
	isPaced   bool
	isWatched bool   // a cleanup follows the next collection
	collected uint64 // collections until GOGC was set
}

// Spare makes the garbage collector run whenever the heap has grown by half, not only when it has
// doubled, until done is called: what takes much memory for a short time takes less of it, and more
// of the processor. A heap that is small may grow further, as far as [Pace] finds it so. A GOGC that is lower stays,
// and so does one that is off.
func Spare() (done func()) {
	sparing.Lock()
	defer sparing.Unlock()
	if sparing.count++; sparing.count == 1 {
		sparing.before = debug.SetGCPercent(sparingPercent)
		if sparing.isPaced = sparing.before >= sparingPercent; sparing.isPaced {
			pace()
			watch()
		} else {
			debug.SetGCPercent(sparing.before)
		}
	}
	return sync.OnceFunc(func() {
		sparing.Lock()
		defer sparing.Unlock()
		if sparing.count--; sparing.count == 0 {
			sparing.isPaced = false
			debug.SetGCPercent(sparing.before)
		}
	})
}

// Pace sets GOGC for the heap as the last collection left it, if memory is spared. That is done after each collection
// anyhow, but on one processor late: who takes much memory calls it often.
func Pace() {
	sparing.Lock()
	defer sparing.Unlock()
	if sparing.isPaced && collections() != sparing.collected {
		pace()
	}
}

// watch calls Pace after each collection, until memory is no longer spared.
func watch() {
	if sparing.isWatched {
		return
	}
	sparing.isWatched = true
	runtime.AddCleanup(new(afterCollection), func(struct{}) {
		Pace()
		sparing.Lock()
		defer sparing.Unlock()
		if sparing.isWatched = false; sparing.isPaced {
			watch()
		}
	}, struct{}{})
}

// An afterCollection is garbage from the start: its cleanup runs after the next collection.
type afterCollection struct{ _ *byte }

func pace() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/stack:bytes"}}
	sparing.collected = collections()
	metrics.Read(samples)
	debug.SetGCPercent(percentFor(samples[0].Value.Uint64(), samples[1].Value.Uint64()+samples[2].Value.Uint64()))
}

// collections returns how often the collector has run.
func collections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// percentFor returns the GOGC with which a heap of which so many bytes are alive may grow to sparingHeap, or by half if
// that is more. The collector adds the same share of the other memory that it scans.
func percentFor(live, scanned uint64) int {
	if live >= sparingHeap {
		return sparingPercent
	}
	return min(largestPercent, max(sparingPercent, int((sparingHeap-live)*100/(live+scanned+1))))
}
