//go:build !unix

package proxy

// peekClosed knows no way to look. A client that has gone is then noticed when
// something is written to it.
func peekClosed(uintptr) (closed, waits bool) { return false, false }

// idleWithoutBuffer knows no way to wait for a socket without reading from it.
func (c *conn) idleWithoutBuffer() {}
