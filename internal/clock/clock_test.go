package clock

import (
	"testing"
	"time"
)

// TestAfter compares with the time that time.Now returns before and behind.
func TestAfter(t *testing.T) {
	start := time.Now()
	for name, earlier := range map[string]time.Time{
		"zero": {}, "a moment ago": start, "an hour ago": start.Add(-time.Hour), "of the wall alone": start.Round(0),
	} {
		before := time.Now()
		got := After(earlier)
		if after := time.Now(); got.Before(before) || got.After(after) {
			t.Errorf("after %s it is %s, which is not between %s and %s", name, got, before, after)
		}
	}
}
