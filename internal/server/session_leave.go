package server

import (
	"math"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/listeners"
)

// leaving is how a connection ends without a request being lost: the client is told first that it has
// to go, and which streams are served only when it knows (RFC 9113, 6.8).
type leaving struct {
	state leavingState
	last  uint32 // the last stream that is served
	timer *time.Timer
}

type leavingState uint8

const (
	staying   leavingState = iota
	announced              // the client was told, and its answer is awaited
	limited                // no further stream is served
)

// leavingPing is the ping whose answer shows that the client has been told.
var leavingPing = [8]byte{'l', 'e', 'a', 'v', 'i', 'n', 'g'}

// leavingPatience is how long that answer is awaited.
const leavingPatience = time.Second

// isLast reports whether a stream comes after the last one that is served.
func (l *leaving) isLast(id uint32) bool { return l.state == limited && id > l.last }

// leave ends the connection when its streams are over. A client that leaves opens no more of them. The lock is held.
func (s *session) leave(byClient bool) {
	switch {
	case s.leaving.state != staying:
	case byClient:
		s.leaving = leaving{state: limited, last: math.MaxInt32}
		s.leaveIfEmpty()
	default:
		s.leaving.state = announced
		s.goAway(math.MaxInt32, http2.ErrCodeNo, "")
		s.out.frame(framePing, 0, 0, leavingPing[:])
		s.leaving.timer = time.AfterFunc(leavingPatience, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.leaveNow()
		})
		s.kick()
	}
}

// leaveNow says which streams are served. The lock is held.
func (s *session) leaveNow() {
	if s.leaving.state != announced {
		return
	}
	s.leaving.timer.Stop()
	s.leaving.state, s.leaving.last = limited, s.last
	s.goAway(s.last, http2.ErrCodeNo, "")
	s.leaveIfEmpty()
	s.kick()
}

// leaveIfEmpty ends the connection if no stream is left. The lock is held.
func (s *session) leaveIfEmpty() {
	if s.leaving.state == limited && len(s.streams) == 0 {
		s.out.isLast = true
		if len(s.out.pending) == 0 && !s.out.isBusy {
			s.wake()
		}
	}
}

// wake has the reader end the connection: all is written.
func (s *session) wake() {
	s.hasLeft.Store(true)
	_ = s.conn.socket.SetReadDeadline(time.Unix(1, 0)) // if it fails the connection is at its end
}

// drainWithAnswer ends the connection with the streams that it has, if the server drains. The lock is held.
func (s *session) drainWithAnswer() {
	if s.server.Draining() {
		s.leave(false)
	}
}

// stop implements connection. The server's lock is held, so that nothing is done here that waits for
// the session's.
func (s *session) stop() {
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.streams {
			x.sending.interrupt(Events)
			x.endLasting()
		}
		s.leave(false)
	}()
}

// came implements connection.
func (s *session) came() (address string, made *listeners.Listener) { return s.conn.came() }

// retire implements connection.
func (s *session) retire() { s.stop() }

// cut implements connection.
func (s *session) cut() {
	s.conn.socket.close()
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.streams {
			x.sending.interrupt(x.sending.of())
			x.giveUp()
		}
	}()
}

// exchanges implements connection.
func (s *session) exchanges(f func(ongoing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.streams {
		if x.isStarted && !x.isReady {
			f(x)
		}
	}
}
