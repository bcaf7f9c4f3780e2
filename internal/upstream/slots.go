package upstream

import (
	"slices"
	"time"
)

// slotAllocator counts the connections to all endpoints, and grants their slots. The pool's lock guards it.
type slotAllocator struct {
	limits     Limits
	mayShare   bool // connections may carry several round trips at a time
	open, idle int  // open counts the connections that are being made
	// promised is how many round trips the connections that are being made are expected to carry beside those that they
	// are made for. waiting is how many requests wait beside the one that asks.
	promised, waiting int
	// generation is the generation of connections made from now on; older ones are not used again.
	generation uint64
	isClosed   bool
	doomed     []*connection // to be closed once the lock is given back
}

// hasRoom reports whether the endpoint can be granted a slot, or a connection, at once. While connections are made that
// many may share, no further one is, unless more requests wait than those will carry.
func (s *slotAllocator) hasRoom(e *endpoint) bool {
	switch c := &e.Conns; {
	case len(c.free) > 0:
		return true
	case s.mayShare && c.making > 0 && s.waiting < s.promised:
		return false
	}
	return s.canMake(e)
}

// canMake reports whether a connection to the endpoint may be made.
func (s *slotAllocator) canMake(e *endpoint) bool {
	if limit := s.limits.ConnsPerEndpoint; limit > 0 && e.Conns.open >= limit {
		return false
	}
	return s.open < s.limits.Conns || s.idle > 0
}

// take grants what the endpoint, which has room, can give. If no more connections may be made, an idle one to one of
// all endpoints makes room. An own connection is made in any case; there may be no room for that.
func (s *slotAllocator) take(e *endpoint, all []*endpoint, isOwn bool) (grant, error) {
	if isOwn && !s.canMake(e) {
		return grant{}, errNoRoom
	}
	e.Busy++
	c := &e.Conns
	if n := len(c.free); n > 0 && !isOwn {
		// One that others use needs no look. Of the idle ones the one used last is the least likely to be stale.
		cn := c.free[n-1]
		g := grant{conn: cn, endpoint: e, isShared: n > c.idle}
		if !g.isShared {
			s.countIdle(e, -1)
		}
		if cn.taken++; cn.isFull() {
			c.free[n-1], c.free = nil, c.free[:n-1]
		}
		return g, nil
	}
	if s.open >= s.limits.Conns {
		s.evict(all)
	}
	c.open++
	s.open++
	if !isOwn {
		c.making++
		s.promised += c.others()
	}
	return grant{endpoint: e, isOwn: isOwn}, nil
}

func (s *slotAllocator) countIdle(e *endpoint, n int) {
	e.Conns.idle += n
	s.idle += n
}

// made adds a connection that was made for a request, which has one of its slots.
func (s *slotAllocator) made(cn *connection) {
	c := &cn.endpoint.Conns
	if !cn.isOwn {
		s.promised -= c.making * c.others()
		c.making--
		c.expected = cn.slots
		s.promised += c.making * c.others()
	}
	if !cn.isFull() && !s.isPast(cn) {
		c.free = append(c.free, cn)
	}
}

// isPast reports whether no further slot of the connection may be granted.
func (s *slotAllocator) isPast(cn *connection) bool {
	return cn.isSpent || cn.endpoint.IsRemoved() || s.isClosed || cn.generation != s.generation
}

// evict closes the oldest idle connection of the endpoint that has most of them, so that another endpoint gets its
// share of the connections.
func (s *slotAllocator) evict(all []*endpoint) {
	var most *endpoint
	for _, e := range all {
		if most == nil || e.Conns.idle > most.Conns.idle {
			most = e
		}
	}
	s.closeIdle(most, 1)
}

// closeIdle closes the n idle connections of an endpoint that were used longest ago.
func (s *slotAllocator) closeIdle(e *endpoint, n int) {
	for _, cn := range e.Conns.free[:n] {
		cn.wasIdle = true
		s.doom(cn)
	}
	e.Conns.free = slices.Delete(e.Conns.free, 0, n)
	s.countIdle(e, -n)
}

// doom leaves a connection of which no slot is in use to be closed.
func (s *slotAllocator) doom(cn *connection) {
	s.discount(cn.endpoint)
	s.doomed = append(s.doomed, cn)
}

// discount no longer counts a connection to the endpoint.
func (s *slotAllocator) discount(e *endpoint) {
	e.Conns.open--
	s.open--
}

// unmade takes back the leave to make a connection.
func (s *slotAllocator) unmade(g *grant) {
	if c := &g.endpoint.Conns; !g.isOwn {
		c.making--
		s.promised -= c.others()
	}
	s.discount(g.endpoint)
}

// spend grants no further slot of a connection, and leaves it to be closed if none is in use.
func (s *slotAllocator) spend(cn *connection) {
	if cn.isSpent {
		return
	}
	cn.isSpent = true
	c := &cn.endpoint.Conns
	if i := slices.Index(c.free[:c.idle], cn); i >= 0 {
		c.free = slices.Delete(c.free, i, i+1)
		s.countIdle(cn.endpoint, -1)
		s.doom(cn)
		return
	}
	c.remove(cn)
}

// resize gives a connection another number of slots. More may be in use then.
func (s *slotAllocator) resize(cn *connection, slots int) {
	wasFull := cn.isFull()
	cn.slots = slots
	switch isFull := cn.isFull(); {
	case s.isPast(cn) || cn.taken == 0:
	case isFull && !wasFull:
		cn.endpoint.Conns.remove(cn)
	case wasFull && !isFull:
		cn.endpoint.Conns.free = append(cn.endpoint.Conns.free, cn)
	}
}

// put takes a slot of a connection back, and reports whether the connection is idle now, and kept for another exchange.
func (s *slotAllocator) put(cn *connection, isReusable bool, now time.Time) bool {
	c, wasFull := &cn.endpoint.Conns, cn.isFull()
	cn.taken--
	cn.isSpent = cn.isSpent || !isReusable
	isIdle, isPast := cn.taken == 0, s.isPast(cn)
	if !wasFull && (isIdle || isPast) {
		c.remove(cn)
	}
	switch {
	case isPast && isIdle:
		s.doom(cn)
	case isPast:
	case isIdle:
		cn.freed = now
		c.free = slices.Insert(c.free, c.idle, cn)
		s.countIdle(cn.endpoint, 1)
		return true
	case wasFull && !cn.isFull():
		c.free = append(c.free, cn)
	}
	return false
}

// expire closes the idle connections of an endpoint that were unused for a time. It returns when
// the next one is due, if there is one.
func (s *slotAllocator) expire(e *endpoint, after time.Duration, now time.Time) (left time.Duration, any bool) {
	c, n := &e.Conns, 0
	for n < c.idle && now.Sub(c.free[n].freed) >= after {
		n++
	}
	if n > 0 {
		s.closeIdle(e, n)
	}
	if c.idle == 0 {
		return 0, false
	}
	return after - now.Sub(c.free[0].freed), true
}

// drop closes the idle connections of an endpoint, and grants no slot of the others any more.
func (s *slotAllocator) drop(e *endpoint) {
	s.closeIdle(e, e.Conns.idle)
	e.Conns.free = nil
}
