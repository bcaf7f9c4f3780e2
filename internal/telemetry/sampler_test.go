package telemetry

import (
	"fmt"
	"testing"
	"time"
)

// TestSampler: EVT-1: repeated events are counted, not repeated, each kind for itself.
func TestSampler(t *testing.T) {
	var o Sampler
	start := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		kind     string
		after    time.Duration
		want     int
		isLogged bool
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
		if times, tell := o.Allow(c.kind, start.Add(c.after)); times != c.want || tell != c.isLogged {
			t.Errorf("%s after %v: got %d, %v, want %d, %v", c.kind, c.after, times, tell, c.want, c.isLogged)
		}
	}
	for i := range 10 * maxSampled {
		o.Allow(fmt.Sprint(i), start)
	}
	if len(o.last) > maxSampled {
		t.Errorf("%d kinds are kept", len(o.last))
	}
}
