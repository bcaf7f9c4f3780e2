//go:build linux && !race

package peek

import (
	"syscall"
	"unsafe"
)

// The calls below never wait, so that the scheduler of goroutines need not know of them: to tell it
// takes as many instructions as all else that is done for a call.

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), err
}

func write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)))
	return int(n), err
}

func peekOne(fd uintptr) (int, syscall.Errno) {
	var b [1]byte
	n, _, err := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, syscall.MSG_PEEK|
		syscall.MSG_DONTWAIT, 0, 0)
	return int(n), err
}
