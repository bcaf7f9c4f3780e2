package h2

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/message"
)

// AppendAnswer appends the block of an answer with this head, the empty line included. Fields of
// connections are left out, because HTTP/2 has its own framing.
func AppendAnswer(dst, head []byte) []byte {
	dst = AppendStatus(append(dst, BlockStart), head[len("HTTP/1.1 "):len("HTTP/1.1 200")])
	_, rest, _ := bytes.Cut(head, []byte("\r\n"))
	for {
		var name, value []byte
		if name, value, rest = cutField(rest); name == nil {
			return dst
		}
		if !isConnectionSpecific(name) {
			dst = AppendField(dst, name, value)
		}
	}
}

// AppendTrailers appends the block of trailers.
func AppendTrailers(dst []byte, trailers []message.Header) []byte {
	dst = append(dst, BlockStart)
	for i := range trailers {
		dst = AppendField(dst, trailers[i].Name, trailers[i].Value)
	}
	return dst
}

// isConnectionSpecific reports whether a field belongs to a connection of HTTP/1.1, so that a message
// of HTTP/2 must not have it (RFC 9113, 8.2.2). The name may have capital letters.
func isConnectionSpecific(name []byte) bool {
	switch message.FieldOf(name) {
	case message.FieldConnection, message.FieldTransferEncoding, message.FieldKeepAlive, message.FieldUpgrade,
		message.FieldProxyConnection, message.FieldHTTP2Settings:
		return true
	}
	return false
}
