package h2

import "encoding/binary"

// A block starts with BlockStart: it makes the peer's dynamic table empty for good, which the encoder
// does not use. So a block depends on no other, and can be made by any goroutine in any order. A
// peer that makes its table smaller needs no further word (RFC 7541, 4.2).
const BlockStart = 0x20

// AppendFrame appends the header of a frame whose payload has so many bytes (RFC 9113, 4.1).
func AppendFrame(dst []byte, kind, flags byte, stream uint32, length int) []byte {
	dst = append(dst, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(dst, stream)
}

// AppendField appends a field to a block: a literal that no table keeps, by the number of its name if
// the static table has one (RFC 7541, 6.2.2). The name becomes lower case. A field about credentials
// is marked as one that no hop may keep in a table (RFC 7541, 7.1.3).
//
// The encoder of golang.org/x/net/http2/hpack keeps fields in a table, so that blocks have to be made
// in the order in which they are sent, and each field has to be a string of its own.
func AppendField(dst, name, value []byte) []byte {
	index, isSecret := staticIndex(name)
	first := byte(0)
	if isSecret {
		first = 0x10
	}
	dst = appendInt(dst, first, 4, index)
	if index == 0 {
		dst = appendInt(dst, 0, 7, len(name))
		for _, c := range name {
			dst = append(dst, lower(c))
		}
	}
	return append(appendInt(dst, 0, 7, len(value)), value...)
}

// AppendStatus appends the pseudo field of an answer. The code has three digits.
func AppendStatus(dst []byte, code []byte) []byte {
	switch string(code) {
	case "200":
		return append(dst, 0x88)
	case "204":
		return append(dst, 0x89)
	case "206":
		return append(dst, 0x8a)
	case "304":
		return append(dst, 0x8b)
	case "400":
		return append(dst, 0x8c)
	case "404":
		return append(dst, 0x8d)
	case "500":
		return append(dst, 0x8e)
	}
	return append(appendInt(append(dst, 0x08), 0, 7, len(code)), code...)
}

// appendInt appends an integer whose first byte has n bits for it beside others (RFC 7541, 5.1).
func appendInt(dst []byte, others byte, n, v int) []byte {
	most := 1<<n - 1
	if v < most {
		return append(dst, others|byte(v))
	}
	dst = append(dst, others|byte(most))
	for v -= most; v >= 0x80; v >>= 7 {
		dst = append(dst, 0x80|byte(v&0x7f))
	}
	return append(dst, byte(v))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// staticIndex returns the number that a name has in the static table (RFC 7541, Appendix A), 0 if it
// has none, and whether the field has credentials.
func staticIndex(name []byte) (index int, isSecret bool) {
	var b [27]byte // the longest name of the table is shorter
	if len(name) > len(b) {
		return 0, false
	}
	for i, c := range name {
		b[i] = lower(c)
	}
	switch string(b[:len(name)]) {
	case ":authority":
		return 1, false
	case ":method":
		return 2, false
	case ":path":
		return 4, false
	case ":scheme":
		return 6, false
	case "accept-charset":
		return 15, false
	case "accept-encoding":
		return 16, false
	case "accept-language":
		return 17, false
	case "accept-ranges":
		return 18, false
	case "accept":
		return 19, false
	case "access-control-allow-origin":
		return 20, false
	case "age":
		return 21, false
	case "allow":
		return 22, false
	case "authorization":
		return 23, true
	case "cache-control":
		return 24, false
	case "content-disposition":
		return 25, false
	case "content-encoding":
		return 26, false
	case "content-language":
		return 27, false
	case "content-length":
		return 28, false
	case "content-location":
		return 29, false
	case "content-range":
		return 30, false
	case "content-type":
		return 31, false
	case "cookie":
		return 32, true
	case "date":
		return 33, false
	case "etag":
		return 34, false
	case "expect":
		return 35, false
	case "expires":
		return 36, false
	case "from":
		return 37, false
	case "host":
		return 38, false
	case "if-match":
		return 39, false
	case "if-modified-since":
		return 40, false
	case "if-none-match":
		return 41, false
	case "if-range":
		return 42, false
	case "if-unmodified-since":
		return 43, false
	case "last-modified":
		return 44, false
	case "link":
		return 45, false
	case "location":
		return 46, false
	case "max-forwards":
		return 47, false
	case "proxy-authenticate":
		return 48, false
	case "proxy-authorization":
		return 49, true
	case "range":
		return 50, false
	case "referer":
		return 51, false
	case "refresh":
		return 52, false
	case "retry-after":
		return 53, false
	case "server":
		return 54, false
	case "set-cookie":
		return 55, true
	case "strict-transport-security":
		return 56, false
	case "user-agent":
		return 58, false
	case "vary":
		return 59, false
	case "via":
		return 60, false
	case "www-authenticate":
		return 61, false
	}
	return 0, false
}
