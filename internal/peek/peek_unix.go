//go:build unix

package peek

import (
	"os"
	"syscall"
)

// IsAble is set if the functions of this package can do what they say.
const IsAble = true

// Closed looks at a socket without taking anything from it: it reports whether the other end
// has closed it, and whether there is nothing to see yet.
func Closed(fd uintptr) (closed, waits bool) {
	switch n, err := look(fd); err {
	case 0:
		return n == 0, false
	case syscall.EAGAIN:
		return false, true
	}
	return true, false
}

// Arrived reports whether there is something to read on a socket: bytes, an end or an error. It takes
// nothing off it.
func Arrived(fd uintptr) bool {
	_, err := look(fd)
	return err != syscall.EAGAIN
}

// Read reads from a socket. waits is set if nothing has come; 0 bytes without an error are the end.
func Read(fd uintptr, p []byte) (n int, waits bool, err error) {
	for {
		n, failed := read(fd, p)
		switch failed {
		case 0:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, os.NewSyscallError("read", failed)
		}
	}
}

// Write writes to a socket. waits is set if the socket takes nothing at the moment.
func Write(fd uintptr, p []byte) (n int, waits bool, err error) {
	for {
		n, failed := write(fd, p)
		switch failed {
		case 0:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, os.NewSyscallError("write", failed)
		}
	}
}

// look looks for a byte without taking it.
func look(fd uintptr) (n int, err syscall.Errno) {
	for {
		if n, err = peekOne(fd); err != syscall.EINTR {
			return n, err
		}
	}
}
