package peek

import (
	"syscall"
	"unsafe"
)

// Unacknowledged returns how many bytes of what was written to a socket the other end has not acknowledged yet. It is
// not ok if the system does not say.
func Unacknowledged(fd uintptr) (n int, ok bool) {
	var unsent int32
	_, _, err := syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&unsent)))
	return int(unsent), err == 0
}
