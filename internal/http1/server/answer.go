package server

import "github.com/admission-gateway/gateway/internal/http1"

// finishBody ends the use of the request's body, right before the answer goes out, and decides
// whether the connection ends with it.
func (r *Request) finishBody() {
	r.ReleaseBody()
	if !r.skipBody() {
		r.endAfter(endLingering)
	}
	if r.conn.server.Draining() {
		r.endAfter(end)
	}
}

// connectionLine returns the line by which an answer says what becomes of the connection. HTTP/1.1
// keeps it unless told otherwise.
func (r *Request) connectionLine() string {
	switch {
	case r.fate != keep:
		return "Connection: close\r\n"
	case r.Head.Minor == 0:
		return "Connection: keep-alive\r\n"
	}
	return ""
}

// Send sends an answer whose body is in memory.
func (r *Request) Send(m *http1.Response) {
	r.finishBody()
	r.answered = true
	first, rest := m.Message(r.headOnly, r.connectionLine())
	err := r.conn.sendAnswer(first)
	if err == nil && len(rest) > 0 {
		err = r.conn.sendPart(rest)
	}
	if err != nil {
		r.endAfter(end)
	}
}
