package server

import "sync/atomic"

// A life says whether a shutdown, in another goroutine, has to wait for a connection of HTTP/1.1.
type life struct{ state atomic.Int32 }

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
