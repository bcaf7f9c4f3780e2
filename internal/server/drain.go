package server

import (
	"context"
	"time"
)

// A drainRound waits for the exchanges that are in progress when it begins.
type drainRound struct {
	awaited map[ongoing]struct{}
	// over is closed when none is awaited any longer.
	over chan struct{}
	// ignoresLasting is set if answers that would last are not waited for.
	ignoresLasting bool
}

// release says that an exchange need not be waited for.
func (w *drainRound) release(x ongoing) {
	if _, ok := w.awaited[x]; !ok {
		return
	}
	if delete(w.awaited, x); len(w.awaited) == 0 {
		close(w.over)
	}
}

// young is the age up to which a request is likely to be short.
const young = time.Second

// Drain calls BeginDrain, and waits for the exchanges in progress while the server goes on to serve: requests that
// arrive meanwhile are not refused. If the wait took long, Drain waits a second time, for the exchanges that began
// meanwhile, as far as there is time for that and for a Shutdown after it: what is in progress then is young, and soon
// over.
//
// Tunnels and answers that would last are ended with lasting; it is nothing wrong that they are. Other requests that
// are not done with requests are cut, and its error is returned. Streams of events are not waited for. Drain returns
// how many tunnels and lasting answers were ended.
func (s *Server) Drain(requests, lasting context.Context) (ended int, err error) {
	s.BeginDrain()
	for isAgain := false; ; isAgain = true {
		begin := time.Now()
		if lasting.Err() != nil {
			ended += s.endLasting()
		}
		done, cut, end := s.awaitDrain(lasting.Err() != nil), requests.Done(), lasting.Done()
		for isDone := false; !isDone; {
			select {
			case <-done:
				isDone = true
			case <-end:
				ended, end = ended+s.endLasting(), nil
			case <-cut:
				if s.cutAwaited() {
					err = requests.Err()
				}
				cut = nil
			}
		}
		took := time.Since(begin)
		if by, ok := requests.Deadline(); err != nil || isAgain || took < young || ok && time.Until(by) < 2*took {
			return ended, err
		}
	}
}

// awaitDrain begins a round with the exchanges that are in progress.
func (s *Server) awaitDrain(sparesLasting bool) (done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round = drainRound{awaited: map[ongoing]struct{}{}, over: make(chan struct{}), ignoresLasting: sparesLasting}
	for c := range s.conns {
		c.exchanges(func(x ongoing) {
			if s.round.waitsFor(x.flow()) {
				s.round.awaited[x] = struct{}{}
				x.noteAwaited()
			}
		})
	}
	if len(s.round.awaited) == 0 {
		close(s.round.over)
	}
	return s.round.over
}

func (w *drainRound) waitsFor(f Flow) bool { return f == Whole || f == Lasting && !w.ignoresLasting }

// endLasting ends what lasts, and has nothing wait for it any more.
func (s *Server) endLasting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.ignoresLasting = true
	for c := range s.conns {
		c.exchanges(func(x ongoing) {
			if x.endLasting() {
				s.round.release(x)
				n++
			}
		})
	}
	return n
}

// cutAwaited cuts the requests that are still waited for, but for those that last. It reports whether there was one.
func (s *Server) cutAwaited() (any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.round.awaited {
		if x.flow() != Lasting {
			x.cut()
			s.round.release(x)
			any = true
		}
	}
	return any
}

// release marks an exchange as one that a drain need not wait for.
func (s *Server) release(x ongoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.release(x)
}

// flows notes that an exchange sends events from now on, or what lasts. It returns true if a shutdown has begun: the
// exchange has to end that itself.
func (s *Server) flows(x ongoing) (isStopping bool) {
	if !s.Draining() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.round.waitsFor(x.flow()) {
		s.round.release(x)
	}
	return s.isStopping()
}
