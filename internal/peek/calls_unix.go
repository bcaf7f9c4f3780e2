//go:build unix && (!linux || race)

package peek

// The race detector knows from these calls that what was written before comes before what is read, as tests rely on.

import "syscall"

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, errnoOf(err)
}

func write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, errnoOf(err)
}

func peekOne(fd uintptr) (int, syscall.Errno) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n, errnoOf(err)
}

// errnoOf returns the number of an error of a system call; 0 if there is none.
func errnoOf(err error) syscall.Errno {
	number, _ := err.(syscall.Errno)
	return number
}
