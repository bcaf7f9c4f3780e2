package server

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/memory"
)

const (
	// streamChunk is for how many streams a session takes memory at a time, so that most streams need not ask for any.
	streamChunk = 4
	// sparePatience is how long a session without streams keeps what it has for one.
	sparePatience = 5 * time.Second
	// penalty is for how many seconds new streams behind trusted proxies are looked at after a client reset too many.
	penalty = 10
)

// takeStream asks for the memory of one more stream. The lock is held.
func (s *session) takeStream() bool {
	if s.spare == 0 {
		budget := s.conn.credit.budget
		switch {
		case !budget.IsShort() && s.holdStreams(streamChunk):
		case !s.holdStreams(1):
			return false
		}
	}
	s.setSpare(s.spare - 1)
	return true
}

// holdStreams asks for the memory of n streams.
func (s *session) holdStreams(n int) bool {
	if !s.server.takeStreams(n) {
		return false
	}
	if !s.conn.credit.budget.Hold(n*requestBytes, s.conn.credit.by) {
		s.server.giveStreams(n)
		return false
	}
	s.spare += n
	return true
}

func (s *session) setSpare(n int) {
	if s.spare = n; n > 0 != s.hasSpare.Load() {
		s.hasSpare.Store(n > 0)
	}
}

// giveStream gives back what a stream holds, but for what the next streams need. The stream is no longer one of the
// session. The lock is held.
func (s *session) giveStream(x *streamExchange) {
	budget := s.conn.credit.budget
	if x.account != nil {
		s.server.uncharge(x.account, budget)
		x.account = nil
	}
	if x.cost != requestBytes {
		budget.Release(x.cost, s.conn.credit.by)
		s.server.giveStreams(1)
		return
	}
	most := 2 * streamChunk
	switch {
	case budget.IsShort():
		most = 0
	case len(s.streams) == 0:
		most = min(s.spare, 1)
	}
	s.setSpare(s.spare + 1)
	s.giveSpare(most)
}

// giveSpare gives back the memory of all streams that may come but so many. The lock is held.
func (s *session) giveSpare(most int) {
	if n := s.spare - most; n > 0 {
		s.conn.credit.budget.Release(n*requestBytes, s.conn.credit.by)
		s.server.giveStreams(n)
		s.setSpare(most)
	}
}

// isSilent gives back what was kept for streams to come, and reports whether there was any.
func (s *session) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.spare > 0
	s.giveSpare(0)
	return had
}

// setHolder says for whom the budget counts what the stream takes.
func (x *streamExchange) setHolder(by *memory.Holder) {
	x.body.by = by
	x.request.Memory.SetHolder(by)
}

// lasts gives back what a stream takes no longer whose handler has left its answer to go on.
func (x *streamExchange) lasts() {
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.credit.budget.Release(requestBytes-lastingBytes, s.conn.credit.by)
	x.cost = lastingBytes
}

// charge counts a stream for its client behind a trusted proxy, if the memory is short. It returns false if the stream
// is refused. The lock is held.
func (s *session) charge(x *streamExchange) bool {
	budget, all := s.conn.credit.budget, &s.server.accounts
	ran := all.ran.Load()
	isPenal := ran > 0 && time.Now().Unix()-ran < penalty
	if !isPenal && !budget.IsShort() {
		return true
	}
	a := all.open(s.server.clientOf(&x.request.Head, s.conn.peer.Addr))
	code, what := http2.ErrCodeNo, RefusedStream
	switch {
	case isPenal && !a.hasResets():
		code, what = http2.ErrCodeEnhanceYourCalm, RefusedResets
	case !budget.Charge(requestBytes, &a.Holder):
		code = http2.ErrCodeRefusedStream
	default:
		x.account = a
		x.setHolder(&a.Holder)
		return true
	}
	a.close()
	s.server.settings.Load().Overloaded(what)
	x.isEndedHere, x.isReset = true, true
	s.reset(x.id, code)
	s.remove(x)
	s.kick()
	return false
}
