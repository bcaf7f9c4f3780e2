//go:build unix

package peek

import "syscall"

// Closed looks at a socket without taking anything from it: it reports whether the other end
// has closed it, and whether there is nothing to see yet.
func Closed(fd uintptr) (closed, waits bool) {
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
