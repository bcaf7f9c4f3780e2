package proxy

import (
	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/upstream"
)

// settle ends the use of the request's body, right before the answer goes out,
// and decides whether the connection ends with it.
func (c *conn) settle() {
	c.spill.release()
	if !c.skipBody() {
		c.ending, c.linger = true, true
	}
	if c.server.draining.Load() {
		c.ending = true
	}
}

// The lines by which an answer says what becomes of the connection. HTTP/1.1
// keeps it unless told otherwise.
const (
	connectionClose = "Connection: close\r\n"
	connectionKeep  = "Connection: keep-alive\r\n"
)

// setConnection says in the head of an answer what becomes of the connection.
func (c *conn) setConnection(h *fasthttp.ResponseHeader) {
	switch {
	case c.ending:
		h.SetConnectionClose()
	case c.head.Minor == 0:
		h.Set(fasthttp.HeaderConnection, "keep-alive")
	}
}

// sendAnswer sends ctx.Response, whose body is in memory.
func (c *conn) sendAnswer(ctx *fasthttp.RequestCtx) {
	c.settle()
	c.answered = true
	r := &ctx.Response
	body := r.Body()
	code := r.StatusCode()
	bodiless := c.headOnly || code < 200 || code == fasthttp.StatusNoContent || code == fasthttp.StatusNotModified
	if !bodiless || len(body) > 0 {
		r.Header.SetContentLength(len(body))
	}
	if bodiless {
		body = nil
	}
	c.setConnection(&r.Header)
	buf := c.server.copyBuffer()
	defer c.server.copies.Put(buf)
	out := append(append(buf[:0], r.Header.Header()...), body[:min(len(body), len(buf)/2)]...)
	_, err := c.send(out)
	if rest := body[min(len(body), len(buf)/2):]; err == nil && len(rest) > 0 {
		_, err = c.send(rest)
	}
	if err != nil {
		c.ending = true
	}
}

// sendVerbatim sends an answer of the backend as it came.
func (c *conn) sendVerbatim(a *upstream.Answer) {
	c.settle()
	c.answered = true
	switch {
	case c.ending:
		a.AddLine(connectionClose)
	case c.head.Minor == 0:
		a.AddLine(connectionKeep)
	}
	if _, err := c.send(a.Bytes); err != nil {
		c.ending = true
	}
}
