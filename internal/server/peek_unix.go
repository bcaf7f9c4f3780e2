//go:build unix

package server

import "syscall"

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
