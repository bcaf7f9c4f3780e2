package server

import "sync/atomic"

// A connState says whether a shutdown, in another goroutine, has to wait for a connection of HTTP/1.1.
type connState struct{ state atomic.Int32 }

// The states of a connection.
const (
	active int32 = iota
	idle         // a shutdown does not wait for it
	ended        // by a shutdown, while idle
)

func (s *connState) isActive() bool { return s.state.Load() == active }

// rest says that a shutdown need not wait.
func (s *connState) rest() { s.state.Store(idle) }

// wake says that a shutdown has to wait again; false if one has ended the connection already.
func (s *connState) wake() bool { return s.state.CompareAndSwap(idle, active) }

// stop ends an idle connection for a shutdown; false if the connection is not idle.
func (s *connState) stop() bool { return s.state.CompareAndSwap(idle, ended) }

func (s *connState) isEnded() bool { return s.state.Load() == ended }
