package telemetry

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/admission-gateway/gateway/internal/octets"
)

// AppendRequestID appends a new id of a request: a random UUID (RFC 9562, version 4).
func AppendRequestID(dst []byte) []byte {
	return appendUUID(dst, rand.Uint64()&^(0xf<<12)|4<<12, rand.Uint64()&^(3<<62)|2<<62)
}

// appendUUID appends a UUID of 128 bits, the high ones first.
func appendUUID(dst []byte, high, low uint64) []byte {
	var digits [32]byte
	for i, part := range [...]uint32{uint32(high >> 32), uint32(high), uint32(low >> 32), uint32(low)} {
		binary.BigEndian.PutUint64(digits[8*i:], hexOf(part))
	}
	dst = append(append(dst, digits[:8]...), '-')
	dst = append(append(dst, digits[8:12]...), '-')
	dst = append(append(dst, digits[12:16]...), '-')
	dst = append(append(dst, digits[16:20]...), '-')
	return append(dst, digits[20:]...)
}

// AppendHex appends v in hexadecimal, in 16 digits.
func AppendHex(dst []byte, v uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, hexOf(uint32(v>>32)))
	return binary.BigEndian.AppendUint64(dst, hexOf(uint32(v)))
}

// hexOf returns the eight hexadecimal digits of a number, the first one in the highest byte.
func hexOf(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	isLetter := (x + 6*octets.Ones) >> 4 & octets.Ones // of each byte: 1 if the digit is more than 9
	return x + '0'*octets.Ones + isLetter*('a'-'0'-10)
}
