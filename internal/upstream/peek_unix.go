//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// canPeek is set if hasArrived can look.
const canPeek = true

// hasArrived reports whether there is something to read on a socket: bytes, an end or an error. It takes nothing off it.
func hasArrived(fd uintptr) bool {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}

// writeNow writes to a socket without waiting. tried is unset if the socket takes nothing at the moment.
func writeNow(fd uintptr, p []byte) (n int, tried bool, err error) {
	n, err = syscall.Write(int(fd), p)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return 0, false, nil
	case err != nil:
		return 0, false, os.NewSyscallError("write", err)
	}
	return n, true, nil
}
