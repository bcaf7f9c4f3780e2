package memory

import (
	"strconv"
	"sync"
	"testing"
)

// TestShare: a client holds a quarter of what large requests may have, whatever others hold, and nothing is kept of a
// client that holds nothing.
func TestShare(t *testing.T) {
	b := NewBudget(32<<20, 1) // of which 28 MiB are for large requests
	one, other := b.ShareOf("one"), b.ShareOf("other")
	n := 0
	for one.Take(64 << 10) {
		n++
	}
	if n != 7<<4 || b.InUse() != 7<<20 {
		t.Errorf("a client holds %d parts, %d bytes", n, b.InUse())
	}
	if one.Count(1) || !other.Count(7<<20) || other.Count(1) || other.Take(1) {
		t.Error("a share is not the client's own")
	}
	other.Uncount(7 << 20)
	for range n {
		one.Give(64 << 10)
	}
	if b.InUse() != 0 || len(b.shares.held) != 0 {
		t.Errorf("%d bytes are not given back, of %v", b.InUse(), b.shares.held)
	}
	full := open(b)
	for full.Grow(1 << 20) {
	}
	if one.Take(1<<20) || len(b.shares.held) != 0 {
		t.Error("more is taken than there is")
	}
	if (Share{}).Take(1) || (Share{}).Count(1) {
		t.Error("nobody has a share")
	}
}

// TestSharesAtOnce: whatever clients take and give at a time, all comes back.
func TestSharesAtOnce(t *testing.T) {
	b := NewBudget(4<<20, 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := b.ShareOf(strconv.Itoa(i % 3))
			for range 5000 {
				if s.Take(64 << 10) {
					s.Give(64 << 10)
				}
				if used := b.InUse(); used > LargeShare(b.Limit()) {
					t.Errorf("%d bytes are in use", used)
				}
			}
		})
	}
	wg.Wait()
	if b.InUse() != 0 || len(b.shares.held) != 0 {
		t.Errorf("%d bytes are not given back, of %v", b.InUse(), b.shares.held)
	}
}
