package message

import (
	"strconv"
	"strings"
)

// Forward says what the head of the request to the backend is made of beside
// the client's own header lines.
type Forward struct {
	// Method and Target replace the client's if they are not nil.
	// They are written byte for byte.
	Method, Target []byte
	// Host replaces the client's Host if it is not empty.
	Host string
	// Peer is the address of the client's end of the connection, Proto its scheme; both are sent to
	// the backend.
	Peer, Proto string
	// Origin is what a trusted proxy says by Forwarded; the zero value without one.
	Origin Origin
	// Via is the name of the gateway in Via.
	Via string
	// Skip are fields of the client that are not passed on this time.
	Skip FieldSet
	// Stripped are fields of the client that are never passed on; they are
	// about credentials.
	Stripped FieldSet
	// Extra lines are added after the client's.
	Extra []Header
	// Lines are more of them, each with its CR LF.
	Lines []byte
	// Edits are what the route changes of the client's lines, and of those that the gateway writes.
	Edits *Edits
	// Trace are lines by which logs and traces name the request.
	Trace []byte
	// Length is the length of the body, -1 if the request has none, or one of unknown length. IsChunked says
	// that it has one of unknown length.
	Length    int64
	IsChunked bool
	// SendsTrailers says that the fields behind the body are sent too, so that the word of a client of HTTP/2 which
	// there will be stays true.
	SendsTrailers bool
}

// An Origin is what a proxy says of a request as its client sent it. What it does not say is empty.
type Origin struct{ Client, Proto, Host string }

// AppendForward appends to dst the head of the request to the backend: the
// client's header lines in their order and spelling, without framing and without
// the lines that are dropped; then X-Forwarded-*, Via and Content-Length.
func (h *Head) AppendForward(dst []byte, f *Forward) []byte {
	method, target := f.Method, f.Target
	if method == nil {
		method = h.Method
	}
	if target == nil {
		target = h.Target
	}
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	skip := f.Skip | f.Stripped | Fields(FieldContentLength, FieldXForwardedFor)
	switch {
	case f.Host != "":
		skip |= 1 << FieldHost
		dst = append(append(append(dst, "Host: "...), f.Host...), "\r\n"...)
	case len(h.Host) == 0:
		dst = append(dst, "Host: \r\n"...)
	}
	for i := range h.headers {
		l := &h.headers[i]
		isLost := l.Dropped && !(l.Field == FieldTrailer && f.SendsTrailers && h.IsHTTP2)
		if isLost || l.Field != FieldOther && skip.Has(l.Field) || f.Edits != nil && f.Edits.removes(l.Name) {
			continue
		}
		dst = appendLine(dst, l.Name, l.Value)
	}
	dst = f.Edits.appendLines(dst, f.Skip|f.Stripped)
	for i := range f.Extra {
		dst = appendLine(dst, f.Extra[i].Name, f.Extra[i].Value)
	}
	if h.IsGRPC() {
		dst = append(dst, "TE: trailers\r\n"...) // servers refuse calls by proxies that would lose the status of a call
	}
	dst = append(dst, f.Lines...)
	dst = append(dst, f.Trace...)
	if f.Peer != "" && !f.Edits.takes(FieldXForwardedFor) {
		dst = append(dst, "X-Forwarded-For: "...)
		if h.seen.Has(FieldXForwardedFor) {
			for i := range h.headers {
				if h.headers[i].Field == FieldXForwardedFor && !h.headers[i].Dropped && len(h.headers[i].Value) > 0 {
					dst = append(append(dst, h.headers[i].Value...), ", "...)
				}
			}
		}
		if f.Origin.Client != "" && f.Origin.Client != f.Peer {
			dst = append(append(dst, f.Origin.Client...), ", "...)
		}
		dst = append(append(dst, f.Peer...), "\r\n"...)
	}
	if f.Peer != "" && h.seen.Has(FieldForwarded) && !f.Edits.takes(FieldForwarded) {
		dst = appendForwarded(dst, f)
	}
	switch {
	case f.Edits.takes(FieldXForwardedProto):
	case f.Origin.Proto != "":
		dst = append(append(append(dst, "X-Forwarded-Proto: "...), f.Origin.Proto...), "\r\n"...)
	case f.Proto != "" && !h.seen.Has(FieldXForwardedProto):
		dst = append(append(append(dst, "X-Forwarded-Proto: "...), f.Proto...), "\r\n"...)
	}
	switch {
	case f.Edits.takes(FieldXForwardedHost):
	case f.Origin.Host != "":
		dst = append(append(append(dst, "X-Forwarded-Host: "...), f.Origin.Host...), "\r\n"...)
	case len(h.Host) > 0 && !h.seen.Has(FieldXForwardedHost):
		dst = append(append(append(dst, "X-Forwarded-Host: "...), h.Host...), "\r\n"...)
	}
	if f.Via != "" && !f.Edits.takes(FieldVia) {
		dst = append(append(append(dst, "Via: "...), h.Version()...), ' ')
		dst = append(append(dst, f.Via...), "\r\n"...)
	}
	if f.IsChunked {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if f.Length >= 0 {
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), f.Length, 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendForwarded appends the gateway's own element of Forwarded.
func appendForwarded(dst []byte, f *Forward) []byte {
	dst = append(dst, "Forwarded: for="...)
	if strings.IndexByte(f.Peer, ':') >= 0 {
		dst = append(append(append(dst, `"[`...), f.Peer...), `]"`...)
	} else {
		dst = append(dst, f.Peer...)
	}
	if f.Proto != "" {
		dst = append(append(dst, ";proto="...), f.Proto...)
	}
	return append(dst, "\r\n"...)
}

func appendLine(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
