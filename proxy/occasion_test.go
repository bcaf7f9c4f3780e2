package proxy

import (
	"fmt"
	"testing"
	"time"
)

// TestOccasions: EVT-1: repeated events are counted, not repeated, each kind for itself.
func TestOccasions(t *testing.T) {
	var o occasions
	start := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		kind   string
		after  time.Duration
		want   int
		isTold bool
	}{
		{"a", 0, 1, true},
		{"a", time.Second, 1, false},
		{"a", 2 * time.Second, 2, false},
		{"b", 3 * time.Second, 1, true},
		{"a", 11 * time.Second, 3, true},
		{"a", 12 * time.Second, 1, false},
		{"b", 12 * time.Second, 1, false},
		{"b", 14 * time.Second, 2, true},
		{"a", time.Hour, 2, true},
	} {
		if times, tell := o.due(c.kind, start.Add(c.after)); times != c.want || tell != c.isTold {
			t.Errorf("%s after %v: got %d, %v, want %d, %v", c.kind, c.after, times, tell, c.want, c.isTold)
		}
	}
	for i := range 10 * maxOccasions {
		o.due(fmt.Sprint(i), start)
	}
	if len(o.last) > maxOccasions {
		t.Errorf("%d kinds are kept", len(o.last))
	}
}
