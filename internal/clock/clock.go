// Package clock reads the time at a lower cost than [time.Now].
package clock

import "time"

// After returns the time now to a caller that knows an earlier one. [time.Now] reads the clock of the
// wall and the steady clock; After reads the steady one alone, which costs less than half as much.
// After the zero time, which is of neither, it is time.Now.
func After(earlier time.Time) time.Time {
	if earlier.IsZero() {
		return time.Now()
	}
	return earlier.Add(time.Since(earlier))
}
