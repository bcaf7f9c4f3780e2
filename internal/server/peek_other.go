//go:build !unix

package server

// peekClosed knows no way to look. A client that has gone is then noticed when something is written
// to it.
func peekClosed(uintptr) (closed, waits bool) { return false, false }

// readNow knows no way to read without waiting.
func readNow(uintptr, []byte) (n int, waits bool) { return 0, false }

// canReadNow is false: a connection has a buffer while it waits.
const canReadNow = false
