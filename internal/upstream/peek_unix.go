//go:build unix

package upstream

import "syscall"

// peekAt looks at the socket without taking anything from it. Nothing to read
// is the only good news.
func (cn *conn) peekAt(fd uintptr) {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == syscall.EINTR {
			continue
		}
		cn.stirred = err != syscall.EAGAIN
		return
	}
}
