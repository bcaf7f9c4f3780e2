package policies_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestSetsBeforeAreFreed: what a set shares with those before it keeps none of them, however many files
// were edited one by one.
func TestSetsBeforeAreFreed(t *testing.T) {
	numbers := map[int]int{8: 2, 10: 1} // of writers whose number 0 is wrong
	remarks := make([]int, len(writers))
	files := func() *source.Source {
		var all []source.File
		for i := range writers {
			one := edited{writer: i, number: numbers[i], remark: remarks[i]%2 == 1}
			all = append(all, source.File{Name: fmt.Sprintf("p/%d.yaml", i), Data: []byte(one.text())})
		}
		return source.Of(append(all, source.File{Name: "p/part.yaml", Data: []byte("n: {type: integer}\n")}))
	}
	var alive atomic.Int64
	var set *policies.Set
	for i := range 3 * len(writers) {
		remarks[i%len(writers)]++
		next, found := policies.CompileAfter(set, files(), configured)
		if next == nil {
			t.Fatal(found)
		}
		described(t, next)
		alive.Add(1)
		runtime.AddCleanup(next, func(n *atomic.Int64) { n.Add(-1) }, &alive)
		set = next
	}
	for range 100 {
		if runtime.GC(); alive.Load() == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := alive.Load(); n != 1 {
		t.Errorf("%d of %d sets are still there", n, 3*len(writers))
	}
	runtime.KeepAlive(set)
}
