//go:build unix

package proxy

import "syscall"

// peekClosed looks at a socket without taking anything from it: whether the
// other end has closed it, or whether there is nothing to see yet.
func peekClosed(fd uintptr) (closed, waits bool) {
	var b [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		switch err {
		case nil:
			return n == 0, false
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false, true
		default:
			return true, false
		}
	}
}

// idleWithoutBuffer makes await take a buffer only when there is something to read.
func (c *conn) idleWithoutBuffer() {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		c.raw, c.idle = raw, c.readIdle
	}
}

// readIdle reads what has come; false if nothing has. The buffer is taken when there may be something to put in it: idle
// connections have none, and the one that was used last, whose memory is still near, is used again.
func (c *conn) readIdle(fd uintptr) bool {
	c.borrow()
	for {
		n, err := syscall.Read(int(fd), c.buf)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			c.giveBack()
			return false
		}
		c.w = max(n, 0)
		return true
	}
}
