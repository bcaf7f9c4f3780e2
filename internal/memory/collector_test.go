package memory

import (
	"runtime/debug"
	"testing"
)

// percent returns GOGC.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

// GOGC is lower until all who spare memory are done, unless it is low or off already.
func TestSpare(t *testing.T) {
	defer debug.SetGCPercent(percent())
	for _, test := range []struct{ before, sparing int }{{100, 50}, {400, 50}, {20, 20}, {-1, -1}} {
		debug.SetGCPercent(test.before)
		first, second := Spare(), Spare()
		one := percent()
		first()
		first() // which does nothing more
		two := percent()
		second()
		if after := percent(); one != test.sparing || two != test.sparing || after != test.before {
			t.Errorf("GOGC %d becomes %d, %d and %d; want %d, %d and %d", test.before, one, two, after, test.sparing, test.sparing, test.before)
		}
	}
}
