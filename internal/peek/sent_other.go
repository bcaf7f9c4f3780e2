//go:build !linux

package peek

// Unacknowledged knows no way to ask.
func Unacknowledged(uintptr) (n int, ok bool) { return 0, false }
