//go:build amd64 && !purego

package document

import (
	"math/bits"

	"github.com/admission-gateway/gateway/internal/octets"
)

// maskBlocks is of how many blocks of 64 bytes the seeker keeps masks. It makes half as many at a
// time.
const maskBlocks = 32

// A seeker has masks of what may not pass unseen in a string, of the last blocks before masked.
type seeker struct {
	masks  [maskBlocks]uint64
	masked int
}

// seek returns the offset of the first byte from i that may not pass unseen in a string, -1 if
// there are no masks up to it. At least seven bytes stand behind it.
func (s *scanner) seek(i int) int {
	for i < s.masked {
		if marks := s.masks[uint(i)/octets.MaskBytes%maskBlocks] >> (uint(i) % octets.MaskBytes); marks != 0 {
			return i + bits.TrailingZeros64(marks)
		}
		i = (i | (octets.MaskBytes - 1)) + 1
	}
	return -1
}

// prepare makes masks of the blocks behind masked, for a string from i on. It is false if it
// cannot: near the end of the text, and if the string would lose its first mask.
func (s *scanner) prepare(i int) bool {
	const half = maskBlocks / 2 * octets.MaskBytes
	block := i &^ (octets.MaskBytes - 1)
	from := max(s.masked, block)
	if from > s.wide || from-block > half {
		return false
	}
	s.masked = min((from|(half-1))+1, s.wide+1)
	octets.Masks(s.masks[from/octets.MaskBytes%maskBlocks:], s.src[from:s.masked])
	return true
}
