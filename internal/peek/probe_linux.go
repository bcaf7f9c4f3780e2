package peek

import "golang.org/x/sys/unix"

// ProbeAll looks at many sockets at once. On Linux it finds an end behind bytes that were not read yet. The polls are
// memory for it.
func ProbeAll(all []Probe, polls Polls) Polls {
	polls = polls[:0]
	for i := range all {
		one := &all[i]
		one.HasEnded, one.IsReadable = false, false
		poll := unix.PollFd{Fd: -1} // of which the system says nothing
		_ = one.Socket.Control(func(fd uintptr) { poll = one.asked(fd) })
		polls = append(polls, poll)
	}
	if n, err := unix.Poll(polls, 0); n <= 0 || err != nil {
		return polls // the next look finds it
	}
	for i := range all {
		if polls[i].Revents != 0 {
			// The descriptor may have become another socket's: while Control lasts it is not.
			_ = all[i].Socket.Control(all[i].found)
		}
	}
	return polls
}

// Polls is memory for Looks.
type Polls = []unix.PollFd

// asked returns what is asked of the system. It always tells of a connection that has ended both ways, or broke.
func (l *Probe) asked(fd uintptr) unix.PollFd {
	poll := unix.PollFd{Fd: int32(fd)}
	if !l.ServesHalf {
		poll.Events |= unix.POLLRDHUP
	}
	if l.Reads {
		poll.Events |= unix.POLLIN
	}
	return poll
}

// found notes what the system says of one socket.
func (l *Probe) found(fd uintptr) {
	polls := [1]unix.PollFd{l.asked(fd)}
	if n, err := unix.Poll(polls[:], 0); n <= 0 || err != nil {
		return
	}
	got := polls[0].Revents
	l.HasEnded = got&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	l.IsReadable = got&unix.POLLIN != 0
}
