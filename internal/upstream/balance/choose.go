package balance

// Choose returns the endpoint for the next exchange, or nil if none has room: of two that are ready, drawn at random,
// the one with fewer exchanges. If none is ready, all are asked. Endpoints in their slow starts get less.
func (s *Set[C]) Choose(tried *FailedEndpoints[C]) *Endpoint[C] {
	from := s.ready
	if len(from) == 0 {
		from = s.all
	}
	if tried.n > 0 {
		return s.chooseOther(from, tried)
	}
	switch n := uint32(len(from)); n {
	case 0:
		return nil
	case 1:
		if s.hasRoom(from[0]) {
			return from[0]
		}
		return nil
	default:
		if s.weight > 0 {
			return s.chooseByWeight(tried)
		}
		one, other := s.drawTwo(from, n)
		if other.Busy < one.Busy {
			one, other = other, one
		}
		if s.hasRoom(one) {
			return one
		}
		if s.hasRoom(other) {
			return other
		}
		return s.leastBusy(from, tried)
	}
}

// chooseOther chooses for a request that failed at some endpoints: one that is ready and was not tried, one that was
// not tried, or else the same ones again.
func (s *Set[C]) chooseOther(from []*Endpoint[C], tried *FailedEndpoints[C]) *Endpoint[C] {
	if e := s.leastBusy(from, tried); e != nil {
		return e
	}
	if tried.hasAll(from) {
		if e := s.leastBusy(s.all, tried); e != nil {
			return e
		}
	}
	return s.leastBusy(from, &FailedEndpoints[C]{})
}

// leastBusy returns the endpoint with room that has the fewest exchanges for its weight if it gets one more.
func (s *Set[C]) leastBusy(from []*Endpoint[C], tried *FailedEndpoints[C]) *Endpoint[C] {
	var least *Endpoint[C]
	for _, e := range from {
		if (least == nil || (e.Busy+1)*least.weight < (least.Busy+1)*e.weight) && !tried.has(e) && s.hasRoom(e) {
			least = e
		}
	}
	return least
}

// drawTwo returns two different ones of n endpoints.
func (s *Set[C]) drawTwo(from []*Endpoint[C], n uint32) (one, other *Endpoint[C]) {
	r := s.draw()
	i, j := below(uint32(r), n), below(uint32(r>>32), n-1)
	if j >= i {
		j++
	}
	return from[i], from[j]
}

// draw returns 64 random bits (xorshift64*): the choice needs no secrecy.
func (s *Set[C]) draw() uint64 {
	x := s.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	s.random = x
	return x * 0x2545f4914f6cdd1d
}

// below maps random bits to a number below n.
func below(random, n uint32) uint32 { return uint32(uint64(random) * uint64(n) >> 32) }
