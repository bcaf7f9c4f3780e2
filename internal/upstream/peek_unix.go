//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// canPeek tells whether peekAt can look.
const canPeek = true

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

// at writes on its first call, and asks to be called again when the socket is readable. That must have been so after the
// write, because waiting began before it: what was readable earlier does not count.
func (t *turn) at(fd uintptr) bool {
	if t.over {
		return true
	}
	n, err := syscall.Write(int(fd), t.rest)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return true
	case err != nil:
		t.err = os.NewSyscallError("write", err)
		return true
	}
	t.rest, t.over = t.rest[n:], true
	return len(t.rest) > 0
}
