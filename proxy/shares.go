package proxy

import (
	"math/rand/v2"
	"sync/atomic"
)

// shares share requests by weights: of as many requests in a row as the weights come to, each share is exact, and each
// is spread over them.
type shares struct {
	turn  atomic.Uint64
	step  uint64   // has no factor in common with the sum of the weights
	until []uint64 // the sums of the weights up to each
}

// newShares returns shares by weights, none of which is 0. They begin anywhere, so that tables which come one after
// another do not all begin with the first.
func newShares(weights []int32) *shares {
	s := &shares{until: make([]uint64, len(weights))}
	factor := uint64(0)
	for _, w := range weights {
		factor = divisor(uint64(w), factor)
	}
	sum := uint64(0)
	for i, w := range weights {
		sum += uint64(w) / factor
		s.until[i] = sum
	}
	for s.step = sum*618/1000 + 1; divisor(s.step, sum) != 1; s.step++ {
	}
	s.turn.Store(rand.Uint64N(sum))
	return s
}

// next returns whose turn it is.
func (s *shares) next() int {
	at := s.turn.Add(1) * s.step % s.until[len(s.until)-1]
	for i, until := range s.until {
		if at < until {
			return i
		}
	}
	return 0 // cannot be: at is less than the last of them
}

// divisor returns the greatest common divisor.
func divisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
