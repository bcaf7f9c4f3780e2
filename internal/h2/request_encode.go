package h2

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/message"
)

// AppendRequest appends the block of a request with this head, the empty line included, as
// [message.Head.AppendForward] makes it. Fields of connections are left out, because HTTP/2 has its own framing. Host
// becomes ':authority'.
func AppendRequest(dst, head []byte, scheme string) []byte {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	method, target, _ := bytes.Cut(line, []byte(" "))
	target, _, _ = bytes.Cut(target, []byte(" "))
	dst = appendMethod(append(dst, BlockStart), method)
	if scheme == "https" {
		dst = append(dst, 0x87)
	} else {
		dst = append(dst, 0x86)
	}
	dst = AppendField(dst, []byte(":path"), target)
	lines := rest
	for {
		var name, value []byte
		if name, value, rest = cutField(rest); name == nil {
			break
		}
		if len(value) > 0 && message.FieldOf(name) == message.FieldHost {
			dst = AppendField(dst, []byte(":authority"), value)
		}
	}
	for {
		var name, value []byte
		if name, value, lines = cutField(lines); name == nil {
			return dst
		}
		switch field := message.FieldOf(name); {
		case field == message.FieldHost, isConnectionSpecific(name):
		case field == message.FieldTE && string(value) != "trailers":
		default:
			dst = AppendField(dst, name, value)
		}
	}
}

// cutField returns the first field of lines, without spaces around its value, and the lines behind it. The name is nil
// at the end.
func cutField(lines []byte) (name, value, rest []byte) {
	line, rest, _ := bytes.Cut(lines, []byte("\r\n"))
	if len(line) == 0 {
		return nil, nil, nil
	}
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.Trim(value, " \t"), rest
}

// appendMethod appends the pseudo field of a method.
func appendMethod(dst, method []byte) []byte {
	switch string(method) {
	case "GET":
		return append(dst, 0x82)
	case "POST":
		return append(dst, 0x83)
	}
	return AppendField(dst, []byte(":method"), method)
}
