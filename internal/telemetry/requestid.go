package telemetry

import (
	"encoding/hex"
	"math/rand/v2"
)

// AppendRequestID appends a new id of a request: a random UUID (RFC 9562, version 4).
func AppendRequestID(dst []byte) []byte {
	var id [16]byte
	high, low := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(high>>(8*i)), byte(low>>(8*i))
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}
