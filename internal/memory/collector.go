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
	// sparingHeap is how large the heap may become before that, in bytes, whatever part of it is garbage. The collector marks
	// all that is alive each time it runs: to run it often while the heap grows to this size would spare nothing at the peak.
	sparingHeap = 96 << 20
	// leastHeap is the heap that GOGC is a share of at least, as Go's runtime has it.
	leastHeap = 4 << 20
)

var sparing struct {
	sync.Mutex
	count  int // of the calls of Spare that are not over
	before int // GOGC otherwise
}

// Spare makes the garbage collector run whenever the heap has grown by half, not only when it has
// doubled, until done is called: what takes much memory for a short time takes less of it, and more
// of the processor. A heap that is small may grow to a size that is fixed. A GOGC that is lower stays, and so does one that is
// off.
func Spare() (done func()) {
	sparing.Lock()
	defer sparing.Unlock()
	if sparing.count++; sparing.count == 1 {
		if sparing.before = debug.SetGCPercent(sparingPercent); sparing.before < sparingPercent {
			debug.SetGCPercent(sparing.before)
		} else {
			pace()
		}
	}
	return sync.OnceFunc(func() {
		sparing.Lock()
		defer sparing.Unlock()
		if sparing.count--; sparing.count == 0 {
			debug.SetGCPercent(sparing.before)
		}
	})
}

// pace sets GOGC for the heap as it is, and again after each collection, until memory is no longer spared.
func pace() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(samples)
	debug.SetGCPercent(percentFor(samples[0].Value.Uint64(), samples[1].Value.Uint64()+samples[2].Value.Uint64()))
	runtime.AddCleanup(new(afterCollection), func(struct{}) {
		sparing.Lock()
		defer sparing.Unlock()
		if sparing.count > 0 {
			pace()
		}
	}, struct{}{})
}

// An afterCollection is garbage from the start: its cleanup runs after the next collection.
type afterCollection struct{ _ *byte }

// percentFor returns the GOGC with which a heap of which so many bytes are alive may grow to sparingHeap, or by half if that is
// more. The collector adds the same share of the other memory that it scans.
func percentFor(live, scanned uint64) int {
	if live >= sparingHeap {
		return sparingPercent
	}
	return max(sparingPercent, int((sparingHeap-live)*100/max(live+scanned, leastHeap)))
}
