package peek

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// A Set waits for any number of sockets in one goroutine, because a goroutine for each would take 2 to 8 KB for its
// stack. It is safe for concurrent use. A nil Set waits for nothing.
type Set struct {
	epoll int
	file  *os.File // the same, for as long as it is open
	poll  syscall.RawConn
	// sweepEvery is how often the set looks for waits whose time is over.
	sweepEvery time.Duration

	mu     sync.Mutex
	places []slot
	free   []int32 // places
}

// A slot is the entry of a socket in a set. What the system reports is of its turn, or of a socket that had the slot
// before.
type slot struct {
	of   *Wait
	turn int32
}

// A Wait is the wait for one socket, whose memory is the caller's. The zero value waits for nothing.
type Wait struct {
	socket syscall.RawConn
	by     time.Time // zero is for ever
	came   func(isLate bool)
	at     int32 // place in the set
}

// NewSet returns a set without sockets, whose waits may last so much longer than they should; nil if the system has no
// such thing.
func NewSet(longer time.Duration) *Set {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil
	}
	s := &Set{epoll: fd, file: os.NewFile(uintptr(fd), "epoll"), sweepEvery: longer}
	if s.poll, err = s.file.SyscallConn(); err != nil || s.file.SetReadDeadline(time.Time{}) != nil {
		_ = s.file.Close()
		return nil
	}
	go s.run()
	return s
}

// Add begins to wait for a socket. It has came called once: when there is something to read, an end or an error
// included, or, late, when the time is over. That must not wait. If Add returns false nothing is called.
func (s *Set) Add(w *Wait, socket syscall.RawConn, by time.Time, came func(isLate bool)) bool {
	if s == nil || socket == nil {
		return false
	}
	// The socket is in the system's set before anybody can take the wait from its place, and take the socket out.
	s.mu.Lock()
	defer s.mu.Unlock()
	event := s.enter(w, socket, by, came)
	if !s.control(socket, syscall.EPOLL_CTL_ADD, &event) {
		s.vacate(w)
		return false
	}
	return true
}

// Remove ends a wait. It returns false if there was none, or came is called already.
func (s *Set) Remove(w *Wait) bool {
	if s == nil || !s.leave(w) {
		return false
	}
	s.control(w.socket, syscall.EPOLL_CTL_DEL, nil)
	return true
}

// control changes what the system knows of a socket, which stays open meanwhile.
func (s *Set) control(socket syscall.RawConn, operation int, event *syscall.EpollEvent) bool {
	isDone := false
	of := func(uintptr) {
		err := socket.Control(func(fd uintptr) { isDone = syscall.EpollCtl(s.epoll, operation, int(fd), event) == nil })
		isDone = isDone && err == nil
	}
	return s.poll.Control(of) == nil && isDone // the set stays open as well
}

// enter gives a wait a place, and returns what the system is to report of it. The lock is held.
func (s *Set) enter(w *Wait, socket syscall.RawConn, by time.Time, came func(isLate bool)) syscall.EpollEvent {
	if len(s.places) == len(s.free) { // the first one
		_ = s.file.SetReadDeadline(time.Now().Add(s.sweepEvery))
	}
	if n := len(s.free); n > 0 {
		w.at, s.free = s.free[n-1], s.free[:n-1]
	} else {
		w.at = int32(len(s.places))
		s.places = append(s.places, slot{})
	}
	w.socket, w.by, w.came = socket, by, came
	p := &s.places[w.at]
	p.of = w
	return syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: w.at,
		Pad: p.turn}
}

// leave takes a wait from its place; false if it has none.
func (s *Set) leave(w *Wait) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vacate(w)
}

func (s *Set) vacate(w *Wait) bool {
	if int(w.at) >= len(s.places) || s.places[w.at].of != w {
		return false
	}
	p := &s.places[w.at]
	p.of, p.turn = nil, p.turn+1
	s.free = append(s.free, w.at)
	return true
}

// run calls for what comes, until the set is closed.
func (s *Set) run() {
	events := make([]syscall.EpollEvent, 128)
	sweep := time.Now().Add(s.sweepEvery)
	for {
		n, failed := 0, error(nil)
		err := s.poll.Read(func(fd uintptr) bool {
			n, failed = syscall.EpollWait(int(fd), events, 0)
			return n != 0
		})
		for i := range events[:max(n, 0)] {
			s.report(&events[i])
		}
		switch {
		case os.IsTimeout(err) || time.Now().After(sweep):
			sweep = time.Now().Add(s.sweepEvery)
			s.sweep(sweep)
		case err != nil || failed != nil:
			s.end()
			return
		}
	}
}

// report calls for a socket from which something can be read.
func (s *Set) report(e *syscall.EpollEvent) {
	s.mu.Lock()
	var w *Wait
	if int(e.Fd) < len(s.places) && s.places[e.Fd].turn == e.Pad {
		if w = s.places[e.Fd].of; w != nil {
			s.vacate(w)
		}
	}
	s.mu.Unlock()
	if w != nil {
		s.call(w, false)
	}
}

func (s *Set) call(w *Wait, isLate bool) {
	s.control(w.socket, syscall.EPOLL_CTL_DEL, nil)
	w.came(isLate)
}

// sweep calls for those whose time is over, and has run wake up for the next time if there are others.
func (s *Set) sweep(next time.Time) {
	now := time.Now()
	late := s.take(func(w *Wait) bool { return !w.by.IsZero() && w.by.Before(now) })
	for _, w := range late {
		s.call(w, true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.places) == len(s.free) {
		next = time.Time{}
	}
	_ = s.file.SetReadDeadline(next)
}

// take takes waits from their places.
func (s *Set) take(which func(*Wait) bool) (taken []*Wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.places {
		if w := s.places[i].of; w != nil && which(w) {
			s.vacate(w)
			taken = append(taken, w)
		}
	}
	return taken
}

// end calls for all that wait still.
func (s *Set) end() {
	for _, w := range s.take(func(*Wait) bool { return true }) {
		w.came(true)
	}
}

// Close ends the set. All that wait are late.
func (s *Set) Close() {
	if s != nil {
		_ = s.file.Close()
	}
}
