// Package octets classifies eight bytes of a text at a time, and 64 if the processor can.
//
// A word is eight bytes, the first one in the lowest byte. What a function finds of a byte is the highest bit of the
// same byte of its result.
package octets

import (
	"encoding/binary"
	"math/bits"
)

const (
	// Ones times a byte is a word of that byte, Highs has the highest bit of each byte.
	Ones, Highs = 0x0101010101010101, 0x8080808080808080
)

// Word returns the first eight bytes of a text, which must have as many.
func Word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// WordOf is Word for a string.
func WordOf(s string) uint64 {
	_ = s[7] // and the compiler makes one load of all
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// First returns the place of the first byte of which something was found; 8 if there is none. Other bits than the
// highest ones do not count.
func First(found uint64) int { return bits.TrailingZeros64(found&Highs) >> 3 }

// FirstBelow finds the first byte below c, which is at most 0x80. Of the bytes behind it the result says nothing.
func FirstBelow(x, c uint64) uint64 { return (x - c*Ones) &^ x }

// FirstEqual finds the first byte that is c, which is below 0x80. Of the bytes behind it the result says nothing.
func FirstEqual(x, c uint64) uint64 {
	x ^= c * Ones
	return (x - Ones) &^ x
}
