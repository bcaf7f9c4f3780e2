package server

import (
	"sync"

	"github.com/admission-gateway/gateway/internal/message"
)

// A sending is what an exchange sends, as far as a shutdown, in another goroutine, has to know.
type sending struct {
	mu     sync.Mutex     // guards what follows
	stream message.Stream // that is being sent
	flow   Flow           // of what is being sent
	end    func()         // ends the tunnel, both ways; nil if there is no tunnel
	isOver bool           // what is being sent has been interrupted
	// byClose says that the end of the connection is the end of the stream.
	byClose bool
}

// setStream says what is being sent; nil is nothing.
func (s *sending) setStream(body message.Stream, f Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.flow, s.isOver, s.byClose = body, f, false, false
}

// setEndsByClose says that the end of the connection is the end of the stream that is being sent.
func (s *sending) setEndsByClose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byClose = true
}

func (s *sending) endsByClose() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byClose
}

// setTunnel says that the exchange goes on as a tunnel, which end ends from any goroutine.
func (s *sending) setTunnel(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flow, s.end, s.isOver = Lasting, end, false
}

// of returns the flow of what is being sent.
func (s *sending) of() Flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flow
}

// interrupt ends what is being sent, if it is of the flow and was not ended before: then it returns true.
func (s *sending) interrupt(f Flow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flow != f || s.isOver {
		return false
	}
	s.isOver = true
	if s.stream != nil {
		s.stream.Interrupt()
	}
	if s.end != nil {
		s.end()
	}
	return true
}
