package testutil

import (
	"runtime"
	"strings"
	"testing"
)

// RecordAllocations has all allocations of the process recorded until the test ends, so that [BytesBy] finds those from
// now on.
func RecordAllocations(t *testing.T) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = before })
}

// BytesBy returns how many bytes are held that a function, or what it calls, allocated. The heap as a whole says
// nothing of one request: what goroutines of other tests leave behind comes and goes beside it.
func BytesBy(function string) (n int64) {
	runtime.GC()
	runtime.GC() // the profile is complete as of the collection before the last
	records := make([]runtime.MemProfileRecord, 1000)
	count, all := runtime.MemProfile(records, false)
	for !all { // there are more of them, and may be more again
		records = make([]runtime.MemProfileRecord, count+1000)
		count, all = runtime.MemProfile(records, false)
	}
	for i := range records[:count] {
		frames := runtime.CallersFrames(records[i].Stack())
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); strings.HasSuffix(f.Function, function) {
				n += records[i].InUseBytes()
				break
			}
		}
	}
	return n
}
