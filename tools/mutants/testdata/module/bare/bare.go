// Package bare has no test.
package bare

// IsSmall has no test.
func IsSmall(n int) bool { return n < 10 }
