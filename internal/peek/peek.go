// Package peek looks at sockets, reads from them and writes to them as far as that is possible without waiting.
package peek

import (
	"net"
	"syscall"
)

// Gone reports whether the other end of a connection has closed it. It takes nothing from the socket, and may be called
// while another goroutine reads. A connection that is no socket, nor over one, is never gone.
func Gone(c net.Conn) bool {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	has, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := has.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = raw.Control(func(fd uintptr) { closed, _ = Closed(fd) })
	return closed || err != nil
}
