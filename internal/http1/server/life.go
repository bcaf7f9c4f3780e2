package server

import (
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/http1"
)

// A life says of a connection as much as a shutdown, in another goroutine, has to know.
type life struct {
	state  atomic.Int32
	mu     sync.Mutex   // guards what follows
	stream http1.Stream // that is being sent
	flow   Flow         // of what is being sent
	end    func()       // ends the tunnel, both ways; nil if there is none
	isOver bool         // what is being sent has been interrupted
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

// stop ends an idle connection for a shutdown; false if the connection is not idle.
func (l *life) stop() bool { return l.state.CompareAndSwap(idle, ended) }

func (l *life) isEnded() bool { return l.state.Load() == ended }

// setStream says what is being sent; nil is nothing.
func (l *life) setStream(s http1.Stream, f Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream, l.flow, l.isOver = s, f, false
}

// setTunnel says that the connection goes on as a tunnel, which end ends from any goroutine.
func (l *life) setTunnel(end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow, l.end, l.isOver = Lasting, end, false
}

// sends returns the flow of what is being sent.
func (l *life) sends() Flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow
}

// interrupt ends what is being sent, if it is of the flow and was not ended before: then it returns true.
func (l *life) interrupt(f Flow) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow != f || l.isOver {
		return false
	}
	l.isOver = true
	if l.stream != nil {
		l.stream.Interrupt()
	}
	if l.end != nil {
		l.end()
	}
	return true
}
