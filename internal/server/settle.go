package server

import (
	"context"
	"time"
)

// A settling is a wait for the exchanges that are in progress when it begins.
type settling struct {
	awaited map[ongoing]struct{}
	// over is closed when none is awaited any longer.
	over chan struct{}
	// sparesLasting says that what would last is not waited for.
	sparesLasting bool
}

// release says that an exchange need not be waited for.
func (w *settling) release(x ongoing) {
	if _, ok := w.awaited[x]; !ok {
		return
	}
	if delete(w.awaited, x); len(w.awaited) == 0 {
		close(w.over)
	}
}

// young is the age up to which a request is likely to be short.
const young = time.Second

// Settle drains, and waits for what is in progress while it goes on to serve: requests that arrive
// meanwhile are not refused. If that took long, it does so once more for what began meanwhile, as
// far as there is time for that and for a Shutdown after it: what is in progress then is young, and
// soon over.
//
// Tunnels and answers that would last are ended with lasting; it is nothing wrong that they are. Other requests that are
// not done with requests are cut, and its error is returned. Streams of events are not waited for. Settle returns how many
// tunnels and lasting answers were ended.
func (s *Server) Settle(requests, lasting context.Context) (ended int, err error) {
	s.Drain()
	for isAgain := false; ; isAgain = true {
		begin := time.Now()
		if lasting.Err() != nil {
			ended += s.endLasting()
		}
		done, cut, end := s.await(lasting.Err() != nil), requests.Done(), lasting.Done()
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

// await begins a settling with what is in progress.
func (s *Server) await(sparesLasting bool) (done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settling = settling{awaited: map[ongoing]struct{}{}, over: make(chan struct{}), sparesLasting: sparesLasting}
	for c := range s.conns {
		c.exchanges(func(x ongoing) {
			if s.settling.waitsFor(x.flow()) {
				s.settling.awaited[x] = struct{}{}
				x.noteAwaited()
			}
		})
	}
	if len(s.settling.awaited) == 0 {
		close(s.settling.over)
	}
	return s.settling.over
}

func (w *settling) waitsFor(f Flow) bool { return f == Whole || f == Lasting && !w.sparesLasting }

// endLasting ends what lasts, and has nothing wait for it any more.
func (s *Server) endLasting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settling.sparesLasting = true
	for c := range s.conns {
		c.exchanges(func(x ongoing) {
			if x.endLasting() {
				s.settling.release(x)
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
	for x := range s.settling.awaited {
		if x.flow() != Lasting {
			x.cut()
			s.settling.release(x)
			any = true
		}
	}
	return any
}

// release marks an exchange as one that settling need not wait for.
func (s *Server) release(x ongoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settling.release(x)
}

// flows notes that an exchange sends events from now on, or what lasts. It returns true if a shutdown has begun: the exchange
// has to end that itself.
func (s *Server) flows(x ongoing) (isStopping bool) {
	if !s.Draining() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.settling.waitsFor(x.flow()) {
		s.settling.release(x)
	}
	return s.isStopping()
}
