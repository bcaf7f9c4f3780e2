package descriptors

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// The pauses after errors of accept: the first, and the longest.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// A Listener accepts connections for as long as its socket lasts. Errors of accept(2) say that a descriptor or memory
// is short, or that one connection failed before it was accepted: Accept waits, and tries again.
type Listener struct {
	net.Listener
	// Failed, if it is set, is called for each failure before a pause. It may close connections to make room.
	Failed func(cause error)
	// Tell, if it is set, is called at most once a second, with the number of failures since.
	Tell func(cause error, times int)

	failures int // that were not told
	told     time.Time
	now      func() time.Time    // for tests; nil means time.Now
	wait     func(time.Duration) // for tests; nil means time.Sleep
}

// Accept returns the next connection. An error says that the socket is closed or is none that listens.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		nc, err := l.Listener.Accept()
		if err == nil || !mayPass(err) {
			return nc, err
		}
		l.failed(err)
		if l.wait != nil {
			l.wait(pause)
			continue
		}
		time.Sleep(pause)
	}
}

func (l *Listener) failed(cause error) {
	if l.Failed != nil {
		l.Failed(cause)
	}
	if l.Tell == nil {
		return
	}
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	l.failures++
	if at := now(); at.Sub(l.told) >= time.Second {
		l.Tell(cause, l.failures)
		l.told, l.failures = at, 0
	}
}

// mayPass reports whether accept may succeed after an error of it.
func mayPass(err error) bool {
	var code syscall.Errno
	if errors.Is(err, net.ErrClosed) || !errors.As(err, &code) {
		return false
	}
	switch code {
	case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EFAULT:
		return false
	}
	return true
}
