//go:build unix && !linux

package peek

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
