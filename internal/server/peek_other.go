//go:build !unix

package server

// readNow knows no way to read without waiting.
func readNow(uintptr, []byte) (n int, waits bool) { return 0, false }

// canReadNow is false: a connection has a buffer while it waits.
const canReadNow = false
