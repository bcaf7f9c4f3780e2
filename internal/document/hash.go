package document

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// The keys of objects are hashed with secrets of this process, so that an attacker cannot prepare
// keys that collide.
var secret = [3]uint64{rand.Uint64() | 1, rand.Uint64() | 1, rand.Uint64() | 1}

func load64(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

func load32(p unsafe.Pointer, i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, i))[:])
}

func byteAt(p unsafe.Pointer, i int) byte { return *(*byte)(unsafe.Add(p, i)) }

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashShort hashes a key of at most 8 bytes, given as a little-endian word. It multiplies within
// words, which takes fewer registers than mix.
func hashShort(word uint64) uint32 {
	h := (word ^ secret[0]) * secret[1]
	return uint32((h ^ h>>32) * secret[2] >> 32)
}

// hashMedium hashes a key of 9 to 16 bytes, given as its first and its last word.
func hashMedium(first, last uint64, size int) uint32 {
	h := ((first ^ secret[2]) + uint64(size)) * secret[1]
	return hashShort(h ^ h>>32 ^ last)
}

// hashString hashes a decoded key.
func hashString(s string) uint32 {
	p, n := unsafe.Pointer(unsafe.StringData(s)), len(s)
	switch {
	case n > 16:
		return hashLong(p, n)
	case n > 8:
		return hashMedium(load64(p, 0), load64(p, n-8), n)
	}
	return hashShort(shortWord(p, n))
}

// shortWord is the little-endian word of n bytes at p, at most 8.
func shortWord(p unsafe.Pointer, n int) uint64 {
	switch {
	case n == 8:
		return load64(p, 0)
	case n >= 4:
		return uint64(load32(p, 0)) | uint64(load32(p, n-4))<<(8*(n-4))
	case n > 0:
		s := unsafe.Slice((*byte)(p), n)
		return uint64(s[0]) | uint64(s[n>>1])<<(8*(n>>1)) | uint64(s[n-1])<<(8*(n-1))
	}
	return 0
}

// hashLong hashes a key of more than 16 bytes at p.
func hashLong(p unsafe.Pointer, n int) uint32 {
	h := secret[1] + uint64(n)
	i := 0
	for ; n-i > 16; i += 16 {
		h = mix(load64(p, i)^secret[0], load64(p, i+8)^h)
	}
	if n-i > 8 {
		h = mix(load64(p, i)^secret[2], load64(p, n-8)^h)
	} else {
		h = mix(load64(p, n-8)^secret[2], h)
	}
	return uint32(h)
}

// Hash is a hash of a string that is the same as long as the process lives, and that an attacker
// cannot prepare collisions for.
func Hash(s string) uint32 { return hashString(s) }

// HashWords is such a hash of two words.
func HashWords(a, b uint64) uint64 { return mix(a^secret[0], b^secret[1]) }

// The letters of ASCII in capitals and in small letters have the same bits in lower. Odd factors
// spread bits to the highest ones.
const (
	lower  = 0x2020202020202020
	spread = 0x9E3779B97F4A7C15
)

// coarseShort hashes a key in ASCII of at most 8 bytes, given as a little-endian word. Keys that
// differ in case alone have the same hash; use its highest bits. Clients can prepare collisions.
func coarseShort(word uint64) uint64 { return (word | lower) * spread }

// coarseMedium is coarseShort of a key of 9 to 16 bytes, given as its first and its last word.
func coarseMedium(first, last uint64) uint64 {
	return ((first|lower)*spread ^ (last | lower)) * spread
}

// coarseLong is coarseShort of a key of more than 16 bytes at p.
func coarseLong(p unsafe.Pointer, n int) uint64 {
	h := uint64(0)
	for i := 0; i < n-8; i += 8 {
		h = (h ^ (load64(p, i) | lower)) * spread
	}
	return (h ^ (load64(p, n-8) | lower)) * spread
}

// coarseOf is coarseShort of a key of any length.
func coarseOf(key string) uint64 {
	p, n := unsafe.Pointer(unsafe.StringData(key)), len(key)
	switch {
	case n > 16:
		return coarseLong(p, n)
	case n > 8:
		return coarseMedium(load64(p, 0), load64(p, n-8))
	}
	return coarseShort(shortWord(p, n))
}

// maxShort is how many bytes are compared as two words.
const maxShort = 16

// A Name is a key that is looked up often, with its hash. It is valid in this
// process only.
type Name struct {
	text string
	hash uint32
	// the first and the last eight bytes of a text of at most 16, and which bits of first there are
	first, mask, last uint64
}

// NewName makes the Name of a key.
func NewName(key string) Name {
	n := Name{text: key, hash: hashString(key)}
	if size := len(key); size <= maxShort {
		var text [maxShort]byte
		copy(text[:], key)
		n.first, n.mask = binary.LittleEndian.Uint64(text[:]), ^uint64(0)
		if size < 8 {
			n.mask >>= 64 - 8*size
		}
		if size > 8 {
			n.last = binary.LittleEndian.Uint64(text[size-8:])
		}
	}
	return n
}

// String is the key.
func (n Name) String() string { return n.text }
