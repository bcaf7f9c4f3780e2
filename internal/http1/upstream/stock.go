package upstream

import (
	"slices"
	"time"
)

// stock counts the connections to all endpoints. The pool's lock guards it.
type stock struct {
	limits     Limits
	open, idle int // open counts the connections that are being made
	// generation is the generation of connections made from now on; older ones are not used again.
	generation uint64
	isClosed   bool
	doomed     []*conn // to be closed once the lock is given back
}

// hasRoom reports whether the endpoint can be granted a connection at once.
func (s *stock) hasRoom(e *endpoint) bool {
	if len(e.Conns.idle) > 0 {
		return true
	}
	if limit := s.limits.ConnsPerEndpoint; limit > 0 && e.Conns.open >= limit {
		return false
	}
	return s.open < s.limits.Conns || s.idle > 0
}

// take grants what the endpoint, which has room, can give. If no more connections may be made, an idle one to one of all
// endpoints makes room.
func (s *stock) take(e *endpoint, all []*endpoint) grant {
	e.Busy++
	c := &e.Conns
	if n := len(c.idle); n > 0 {
		// The connection used last is the one least likely to be stale.
		cn := c.idle[n-1]
		c.idle[n-1], c.idle = nil, c.idle[:n-1]
		s.idle--
		return grant{cn, e}
	}
	if s.open >= s.limits.Conns {
		s.evict(all)
	}
	c.open++
	s.open++
	return grant{nil, e}
}

// evict closes the oldest idle connection of the endpoint that has most of them, so that another endpoint gets its share
// of the connections.
func (s *stock) evict(all []*endpoint) {
	var most *endpoint
	for _, e := range all {
		if most == nil || len(e.Conns.idle) > len(most.Conns.idle) {
			most = e
		}
	}
	s.doom(most.Conns.idle[0])
	most.Conns.idle = slices.Delete(most.Conns.idle, 0, 1)
	s.idle--
}

// doom leaves a connection that is not idle to be closed.
func (s *stock) doom(cn *conn) {
	s.unmade(cn.endpoint)
	s.doomed = append(s.doomed, cn)
}

// unmade no longer counts a connection to the endpoint.
func (s *stock) unmade(e *endpoint) {
	e.Conns.open--
	s.open--
}

// put takes a connection back, and reports whether it is kept for another exchange.
func (s *stock) put(cn *conn, isReusable bool, now time.Time) bool {
	e := cn.endpoint
	if !isReusable || e.IsRemoved() || s.isClosed || cn.generation != s.generation {
		s.doom(cn)
		return false
	}
	cn.freed = now
	e.Conns.idle = append(e.Conns.idle, cn)
	s.idle++
	return true
}

// expire closes the idle connections of an endpoint that nobody used for a time. It returns when the next one is due, if
// there is one.
func (s *stock) expire(e *endpoint, after time.Duration, now time.Time) (left time.Duration, any bool) {
	idle, n := e.Conns.idle, 0
	for n < len(idle) && now.Sub(idle[n].freed) >= after {
		s.doom(idle[n])
		n++
	}
	if n > 0 {
		kept := copy(idle, idle[n:])
		clear(idle[kept:])
		e.Conns.idle = idle[:kept]
		s.idle -= n
	}
	if len(e.Conns.idle) == 0 {
		return 0, false
	}
	return after - now.Sub(e.Conns.idle[0].freed), true
}

// drop closes the idle connections of an endpoint.
func (s *stock) drop(e *endpoint) {
	for _, cn := range e.Conns.idle {
		s.doom(cn)
	}
	s.idle -= len(e.Conns.idle)
	e.Conns.idle = nil
}
