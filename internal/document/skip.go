package document

import (
	"math/bits"

	"github.com/admission-gateway/gateway/internal/octets"
)

// A skipper finds the ends of containers in one text, by their brackets and strings alone: what else
// stands in them is not looked at. It has the structure of some blocks of the text.
type skipper struct {
	blocks      [skipBlocks]octets.Structure
	first, have int // the first of these blocks in the text, and how many there are
}

// skipBlocks is of how many blocks a skipper finds the structure at once.
const skipBlocks = 32

// forget makes the skipper ready for another text.
func (s *skipper) forget() { s.have = 0 }

// fill finds the structure from a block of the text on.
func (s *skipper) fill(src []byte, block int) {
	text := src[block*octets.MaskBytes:]
	text = text[:min(len(text), skipBlocks*octets.MaskBytes)]
	octets.Structures(s.blocks[:], text)
	s.first, s.have = block, (len(text)+octets.MaskBytes-1)/octets.MaskBytes
}

// skip returns the offset behind the object or list that begins at i. It is broken if that does not
// end in the text.
func (s *skipper) skip(src []byte, i int) int {
	var (
		from    = ^uint64(0) << (uint(i) % octets.MaskBytes) // of a block
		open    = 0                                          // containers before the block
		within  uint64                                       // all bits are set if a string goes on into the block
		escaped uint64                                       // 1 if its first character is escaped
	)
	for block := i / octets.MaskBytes; block*octets.MaskBytes < len(src); block++ {
		if uint(block-s.first) >= uint(s.have) {
			s.fill(src, block)
		}
		at := &s.blocks[uint(block-s.first)%skipBlocks]
		quotes := at.Quotes & from
		if at.Backslashes|escaped != 0 {
			var by uint64
			by, escaped = escapedBy(at.Backslashes&from, escaped)
			quotes &^= by
		}
		inside := throughout(quotes) ^ within
		within = uint64(int64(inside) >> 63)
		outside := from &^ inside
		from = ^uint64(0)
		opens, closes := at.Opens&outside, at.Closes&outside
		count := bits.OnesCount64(closes)
		if count >= open {
			for rest, closed := closes, 1; rest != 0; rest, closed = rest&(rest-1), closed+1 {
				before := rest&-rest - 1 // the bits below the lowest one
				if open+bits.OnesCount64(opens&before) == closed {
					return block*octets.MaskBytes + bits.TrailingZeros64(rest) + 1
				}
			}
		}
		open += bits.OnesCount64(opens) - count
	}
	return broken
}

// throughout sets, for the quotation marks of a block, the bits from each one that opens a string up
// to the one that closes it, which is not set.
func throughout(quotes uint64) uint64 {
	quotes ^= quotes << 1
	quotes ^= quotes << 2
	quotes ^= quotes << 4
	quotes ^= quotes << 8
	quotes ^= quotes << 16
	return quotes ^ quotes<<32
}

// escapedBy returns the characters of a block that its backslashes escape. carry is 1 if the first
// character is escaped by the block before, and next is the carry for the block behind.
func escapedBy(backslashes, carry uint64) (escaped, next uint64) {
	const even = 0x5555555555555555
	backslashes &^= carry
	follow := backslashes<<1 | carry
	// Of each run of backslashes that begins at an odd place, the sum carries over its end.
	sum, next := bits.Add64(backslashes&^even&^follow, backslashes, 0)
	return (even ^ sum<<1) & follow, next
}
