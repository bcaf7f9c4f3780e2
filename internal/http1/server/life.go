package server

import (
	"github.com/admission-gateway/gateway/internal/http1"

	"sync"
	"sync/atomic"
)

// A life says of a connection as much as a shutdown, in another goroutine, has to know.
type life struct {
	state   atomic.Int32
	mu      sync.Mutex   // guards what follows
	stream  http1.Stream // that is being sent
	endless bool         // it consists of events
}

// The states of a connection.
const (
	active int32 = iota
	idle         // a shutdown does not wait for it
	ended        // by a shutdown, while idle
)

func (l *life) isActive() bool { return l.state.Load() == active }

// rest says that a shutdown need not wait.
func (l *life) rest() { l.state.Store(idle) }

// wake says that a shutdown has to wait again; false if one has ended the connection already.
func (l *life) wake() bool { return l.state.CompareAndSwap(idle, active) }

// end ends an idle connection for a shutdown; false if the connection is not idle.
func (l *life) end() bool { return l.state.CompareAndSwap(idle, ended) }

func (l *life) isEnded() bool { return l.state.Load() == ended }

// setStream says what is being sent; nil is nothing.
func (l *life) setStream(s http1.Stream, endless bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream, l.endless = s, endless
}

// interrupt ends the stream that is being sent; if it is only about events, an endless one.
func (l *life) interrupt(eventsAlone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil && (l.endless || !eventsAlone) {
		l.stream.Interrupt()
	}
}
