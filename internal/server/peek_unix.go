//go:build unix

package server

import "syscall"

// peekClosed looks at a socket without taking anything from it: it reports whether the other end
// has closed it, and whether there is nothing to see yet.
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

// canReadNow reports whether readNow works here.
const canReadNow = true

// readNow reads from a socket without waiting; waits is set if nothing has come. After an error it
// has read nothing.
func readNow(fd uintptr, p []byte) (n int, waits bool) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true
		default:
			return max(n, 0), false
		}
	}
}
