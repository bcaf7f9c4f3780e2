package memory

import (
	"runtime/debug"
	"sync"
)

// sparingPercent is GOGC while memory is spared.
const sparingPercent = 50

var sparing struct {
	sync.Mutex
	count  int // of the calls of Spare that are not over
	before int // GOGC otherwise
}

// Spare makes the garbage collector run whenever the heap has grown by half, not only when it has
// doubled, until done is called: what takes much memory for a short time takes less of it, and more
// of the processor. A GOGC that is lower stays, and so does one that is off.
func Spare() (done func()) {
	sparing.Lock()
	defer sparing.Unlock()
	if sparing.count++; sparing.count == 1 {
		if sparing.before = debug.SetGCPercent(sparingPercent); sparing.before < sparingPercent {
			debug.SetGCPercent(sparing.before)
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
