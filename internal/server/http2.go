package server

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
)

// beginsHTTP2 reports whether a client uses HTTP/2: settings follow the preface.
func beginsHTTP2(received []byte) bool {
	rest, found := bytes.CutPrefix(received, []byte(preface))
	return found && len(rest) > 3 && rest[3] == frameSettings
}

// http1Required returns the answer to such a client. An answer of HTTP/1.1 would be no frame to it, and many clients
// report that as no answer at all. So it gets empty settings, which any server of HTTP/2 sends first, and a GOAWAY that
// asks for HTTP/1.1, with the reason in words.
func http1Required(why string) []byte {
	b := h2.AppendFrame(nil, frameSettings, 0, 0, 0)
	b = h2.AppendFrame(b, frameGoAway, 0, 0, 8+len(why))
	b = binary.BigEndian.AppendUint32(b, 0) // no stream was served
	b = binary.BigEndian.AppendUint32(b, uint32(http2.ErrCodeHTTP11Required))
	return append(b, why...)
}
