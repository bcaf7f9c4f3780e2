package peek

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// sweepEvery is how often a set looks for waits that are over. They may last so much longer.
const sweepEvery = 5 * time.Second

// A Set waits for any number of sockets in one goroutine: a goroutine for each takes 2 to 8 KB for its stack. It is safe
// for concurrent use. A nil Set waits for nothing.
type Set struct {
	file *os.File // of epoll
	poll syscall.RawConn

	mu       sync.Mutex
	places   []place
	free     []int32 // places
	isClosed bool
}

// A place is a socket's in a set. What the system reports is of its turn, or of a socket that was there before.
type place struct {
	of   *Wait
	turn int32
}

// A Wait is the wait for one socket. The zero value waits for nothing. Its fields are guarded by the set's lock.
type Wait struct {
	socket syscall.RawConn
	by     time.Time // zero is for ever
	came   func(isLate bool)
	at     int32 // place in the set
}

// NewSet returns a set without sockets; nil if the system has no such thing.
func NewSet() *Set {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil
	}
	s := &Set{file: os.NewFile(uintptr(fd), "epoll")}
	if s.poll, err = s.file.SyscallConn(); err != nil || s.file.SetReadDeadline(time.Time{}) != nil {
		_ = s.file.Close()
		return nil
	}
	go s.run()
	return s
}

// Add begins to wait for a socket, and calls came once: when there is something to read, an end or an error included, or, late,
// when the time is over. It must not wait. Add returns false if it is not going to call.
func (s *Set) Add(w *Wait, socket syscall.RawConn, by time.Time, came func(isLate bool)) bool {
	if s == nil || socket == nil {
		return false
	}
	event, isAdded := s.enter(w, socket, by, came)
	if !isAdded {
		return false
	}
	failed := error(nil)
	err := socket.Control(func(fd uintptr) {
		failed = syscall.EpollCtl(int(s.file.Fd()), syscall.EPOLL_CTL_ADD, int(fd), &event)
	})
	if err != nil || failed != nil {
		return !s.leave(w)
	}
	return true
}
