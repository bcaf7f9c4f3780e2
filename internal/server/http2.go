package server

import (
	"bytes"
	"encoding/binary"
)

// beginsHTTP2 reports whether a client uses HTTP/2: settings follow the preface.
func beginsHTTP2(received []byte) bool {
	rest, found := bytes.CutPrefix(received, []byte(preface))
	return found && len(rest) > 3 && rest[3] == frameSettings
}

// errHTTP1Required is the error that asks for HTTP/1.1 (RFC 9113, 7).
const errHTTP1Required = 0xd

// http1Required returns the answer to such a client. An answer of HTTP/1.1 would be no frame to it, and many clients report
// that as no answer at all. So it gets empty settings, which any server of HTTP/2 sends first, and a GOAWAY that asks for
// HTTP/1.1, with the reason in words.
func http1Required(why string) []byte {
	b := appendFrame(nil, frameSettings, 0)
	b = appendFrame(b, frameGoAway, 8+len(why))
	b = binary.BigEndian.AppendUint32(b, 0) // no stream was served
	b = binary.BigEndian.AppendUint32(b, errHTTP1Required)
	return append(b, why...)
}

// appendFrame appends the head of a frame about the whole connection, without flags.
func appendFrame(b []byte, kind byte, length int) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), kind, 0)
	return binary.BigEndian.AppendUint32(b, 0)
}
