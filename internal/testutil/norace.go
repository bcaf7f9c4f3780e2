//go:build !race

package testutil

// Race reports whether the race detector is in use. It takes memory and time of its own, several
// times what it watches.
const Race = false
