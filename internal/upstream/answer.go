package upstream

import (
	"bufio"
	"slices"
	"strconv"

	"github.com/admission-gateway/gateway/internal/wire"
)

// Answer is an answer in one piece, as the backend sent it, that its reader has
// nothing to change in. Its memory is used again by the next one.
type Answer struct {
	// Status is the status code; 0 where there is no answer, because it was one for the other reader.
	Status int
	// Bytes are the head without its hop-by-hop lines, the empty line, and the body.
	Bytes []byte
	// head is the length of the head with the empty line.
	head int
}

// AddLine adds a line, its CR LF included, to the end of the head.
func (a *Answer) AddLine(line string) {
	at, end := a.head-len("\r\n"), len(a.Bytes)
	a.Bytes = append(a.Bytes, line...) // makes room; slices.Insert would need the line as bytes
	copy(a.Bytes[at+len(line):], a.Bytes[at:end])
	copy(a.Bytes[at:], line)
	a.head += len(line)
}

// Body is the body.
func (a *Answer) Body() []byte { return a.Bytes[a.head:] }

// ReadHead reads the head into h, until Bytes change.
func (a *Answer) ReadHead(h *wire.Answer) { _ = h.Parse(a.Bytes[:a.head]) } // which it was before: that it is good is known

// Rewrite gives the answer another body, which is none of Bytes, and takes the
// lines out of the head that were dropped from h, which ReadHead filled.
func (a *Answer) Rewrite(h *wire.Answer, body []byte) {
	h.Drop("Content-Length")
	a.RewriteHead(h)
	line := append(make([]byte, 0, 40), "Content-Length: "...)
	a.AddLine(string(append(strconv.AppendInt(line, int64(len(body)), 10), "\r\n"...)))
	a.Bytes = append(a.Bytes, body...)
}

// RewriteHead takes the lines out of the head of an answer without a body that
// were dropped from h, which ReadHead filled.
func (a *Answer) RewriteHead(h *wire.Answer) {
	a.Bytes = a.Bytes[:copy(a.Bytes, a.Bytes[h.Compact(a.Bytes[:a.head]):a.head])]
	a.head = len(a.Bytes)
}

// Reset forgets the answer; the memory stays where it is at most most bytes.
func (a *Answer) Reset(most int) {
	a.Status, a.head, a.Bytes = 0, 0, a.Bytes[:0]
	if cap(a.Bytes) > most {
		a.Bytes = nil
	}
}

// takes tells whether the answer whose head was read is one to be kept as it
// came: no error, which may have to be reworded, and of a small known size.
func (r *Request) takes(cn *conn) bool {
	a := &cn.answer
	return r.Verbatim != nil && a.Status < 400 && (a.NoBody(r.HeadOnly) || !a.Chunked && a.ContentLength >= 0 && a.ContentLength <= SmallBody)
}

// readVerbatim reads the rest of an answer whose head, of n bytes, is in br.
func (c *Client) readVerbatim(cn *conn, br *bufio.Reader, req *Request, n int) *Error {
	v := req.Verbatim
	b, _ := br.Peek(n)
	b = b[cn.answer.Compact(b):]
	v.Bytes = append(v.Bytes[:0], b...)
	v.Bytes[len("HTTP/1.")] = '1'
	v.head = len(b)
	_, _ = br.Discard(n)
	if cn.frame.kind == frameLength {
		at := len(v.Bytes)
		v.Bytes = slices.Grow(v.Bytes, int(cn.frame.left))[:at+int(cn.frame.left)]
		if err := c.fill(cn, br, req, v.Bytes[at:]); err != nil {
			return err
		}
	}
	v.Status = cn.answer.Status
	return nil
}
