package upstream

import "time"

// endpoint is one address of the backend. The pool's lock guards it.
type endpoint struct {
	addr   string  // to dial
	origin *origin // that it stands for

	idle    []*conn // the one used last is last
	open    int     // its connections, with those being made
	busy    int     // those that an exchange has, streams included
	removed bool    // its connections end with their exchanges

	failures  int       // in a row
	ejections int       // in a row, more or less: see eject
	until     time.Time // the end of the last ejection
	ejected   bool
	unhealthy bool // by health checks
	checked   checks
	stop      func() // ends the health checks
}

// maxTries is how many endpoints a request is at most tried at.
const maxTries = 4

// tried are the endpoints where a request has failed.
type tried struct {
	endpoints [maxTries]*endpoint
	n         int
}

// add adds an endpoint, which may be there already; it reports whether there
// may be another try.
func (t *tried) add(e *endpoint) bool {
	if t.n == maxTries {
		return false
	}
	t.endpoints[t.n] = e
	t.n++
	return t.n < maxTries
}

func (t *tried) has(e *endpoint) bool {
	for _, one := range t.endpoints[:t.n] {
		if one == e {
			return true
		}
	}
	return false
}

// all reports whether each of the endpoints was tried.
func (t *tried) all(endpoints []*endpoint) bool {
	for _, e := range endpoints {
		if !t.has(e) {
			return false
		}
	}
	return true
}

// choose returns the endpoint for the next exchange, or nil where all that
// come into question are full: of two that are ready, drawn at random, the one
// with fewer exchanges. If none is ready all are asked, for it is more likely
// that they are judged wrongly than that every one is down.
func (p *pool) choose(not *tried) *endpoint {
	from := p.ready
	if len(from) == 0 {
		from = p.all
	}
	if not.n > 0 {
		return p.chooseOther(from, not)
	}
	switch n := uint32(len(from)); n {
	case 0:
		return nil
	case 1:
		if p.hasRoom(from[0]) {
			return from[0]
		}
		return nil
	default:
		r := p.draw()
		i, j := below(uint32(r), n), below(uint32(r>>32), n-1)
		if j >= i {
			j++
		}
		one, other := from[i], from[j]
		if other.busy < one.busy {
			one, other = other, one
		}
		if p.hasRoom(one) {
			return one
		}
		if p.hasRoom(other) {
			return other
		}
		return p.least(from, not)
	}
}

// chooseOther chooses for a request that failed at some endpoints: one that is
// ready and was not tried, one that was not tried, or else the same ones again.
func (p *pool) chooseOther(from []*endpoint, not *tried) *endpoint {
	if e := p.least(from, not); e != nil {
		return e
	}
	if not.all(from) {
		if e := p.least(p.all, not); e != nil {
			return e
		}
	}
	return p.least(from, &tried{})
}

// least returns the endpoint with room that has the fewest exchanges.
func (p *pool) least(from []*endpoint, not *tried) *endpoint {
	var least *endpoint
	for _, e := range from {
		if (least == nil || e.busy < least.busy) && !not.has(e) && p.hasRoom(e) {
			least = e
		}
	}
	return least
}

// hasRoom tells whether the endpoint can be granted a connection at once.
func (p *pool) hasRoom(e *endpoint) bool {
	if len(e.idle) > 0 {
		return true
	}
	if most := p.config.MaxConnsPerEndpoint; most > 0 && e.open >= most {
		return false
	}
	return p.open < p.config.MaxConns || p.idle > 0
}

// draw returns 64 random bits (xorshift64*): the choice needs no secrecy.
func (p *pool) draw() uint64 {
	x := p.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	p.random = x
	return x * 0x2545f4914f6cdd1d
}

// below maps random bits to a number below n.
func below(random, n uint32) uint32 { return uint32(uint64(random) * uint64(n) >> 32) }
