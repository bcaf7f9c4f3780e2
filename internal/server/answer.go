package server

import "github.com/admission-gateway/gateway/internal/message"

// finishBody ends the use of the request's body, right before the answer goes out, and decides
// whether the connection ends with it.
func (x *exchange) finishBody() {
	x.request.ReleaseBody()
	if !x.skipBody() {
		x.endAfter(endLingering)
	}
	if x.conn.server.Draining() || x.conn.isRetired.Load() {
		x.endAfter(end)
	}
}

// connectionLine returns the line by which an answer says what becomes of the connection. HTTP/1.1
// keeps it unless a field says otherwise.
func (x *exchange) connectionLine() string {
	switch {
	case x.fate != keep:
		return "Connection: close\r\n"
	case x.request.Head.Minor == 0:
		return "Connection: keep-alive\r\n"
	}
	return ""
}

// Send implements Exchange.
func (x *exchange) Send(m *message.Response) {
	x.finishBody()
	x.answered = true
	first, rest := m.Message(x.headOnly, x.connectionLine())
	if x.isHTTP2 {
		first, rest = http1Required(x.request.Refusal.Error()), nil
	}
	err := x.conn.sendAnswer(first)
	if err == nil && len(rest) > 0 {
		err = x.conn.sendPart(rest, true)
	}
	if err != nil {
		x.endAfter(end)
	}
}
