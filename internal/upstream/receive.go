package upstream

import (
	"bufio"
	"io"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/wire"
)

// receive reads the answer. A body that is to be streamed comes back as one.
func (c *Client) receive(cn *conn, br *bufio.Reader, req *Request, resp *fasthttp.Response) (*Body, *Error) {
	n, err := c.readHead(cn, br)
	if err != nil {
		return nil, err
	}
	a := &cn.answer
	if a.Status == 101 {
		return nil, c.switched(cn, br, req, n)
	}
	if req.Upgrade != nil {
		a.Close = true // what the backend may read on the connection as the new protocol is not known
	}
	cn.frame = frameOf(a, req.HeadOnly)
	if cn.frame.kind == frameClose {
		a.Close = true
	}
	if req.takes(cn) {
		if err := c.readVerbatim(cn, br, req, n); err != nil {
			return nil, err
		}
		return nil, c.noSurplus(cn, br)
	}
	if err := c.takeHead(cn, br, n, resp); err != nil {
		return nil, err
	}
	switch f := &cn.frame; {
	case f.kind == frameNone:
	case f.kind == frameLength && req.Whole > 0 && f.left > req.Whole:
		return nil, c.failed(TooLarge, true, nil)
	case f.kind == frameLength && (f.left <= SmallBody || req.Whole > 0):
		err = c.readLength(cn, br, req, resp)
	case f.kind == frameLength:
		return newBody(c, cn, br, nil, c.config.BodyTimeout), nil
	default:
		var body []byte
		if body, err = c.readUnknown(cn, br, req, resp.SwapBody(nil)); err != nil {
			return nil, err
		}
		if !f.done() {
			if req.Whole > 0 {
				return nil, c.failed(TooLarge, true, nil)
			}
			return newBody(c, cn, br, body, c.config.StreamTimeout), nil
		}
		if len(body) <= SmallBody {
			resp.SwapBody(body)
		} else {
			resp.SetBodyRaw(body)
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, c.noSurplus(cn, br)
}

// noSurplus makes sure that nothing follows the answer. Who sent more than was
// announced and who reads it as the next answer cannot be told apart.
func (c *Client) noSurplus(cn *conn, br *bufio.Reader) *Error {
	if cn.frame.kind == frameClose {
		return nil
	}
	surplus, end := cn.holds()
	cn.answer.Close = cn.answer.Close || end
	if surplus || br.Buffered() > 0 {
		return c.failed(Malformed, true, &wire.Error{Code: 502, Message: "bytes follow the end of the answer"})
	}
	return nil
}

// takeHead hands the head, of n bytes, to resp without the lines that end at
// this hop.
func (c *Client) takeHead(cn *conn, br *bufio.Reader, n int, resp *fasthttp.Response) *Error {
	resp.Header.DisableNormalizing()
	resp.ResetBody()
	b, _ := br.Peek(n)
	_, _ = br.Discard(cn.answer.Compact(b))
	if err := resp.Header.Read(br); err != nil {
		return c.failed(Malformed, true, err)
	}
	resp.Header.ResetConnectionClose()
	return nil
}

// readHead reads heads until one is not informational, and returns its length.
func (c *Client) readHead(cn *conn, br *bufio.Reader) (int, *Error) {
	for i := range maxInterim {
		n, err := c.readOneHead(cn, br)
		if err != nil {
			if i > 0 {
				err.again = never
			}
			return 0, err
		}
		if status := cn.answer.Status; status < 200 && status != 101 {
			_, _ = br.Discard(n)
			continue
		}
		return n, nil
	}
	return 0, c.failed(Malformed, true, &wire.Error{Code: 502, Message: "too many informational answers"})
}

// readOneHead waits for a whole head and scans it; it returns its length.
func (c *Client) readOneHead(cn *conn, br *bufio.Reader) (int, *Error) {
	from := 0
	for more := br.Buffered() == 0; ; more = true {
		if have := br.Buffered(); more {
			if _, err := br.Peek(have + 1); err != nil && br.Buffered() == have {
				return 0, c.noHead(have, err)
			}
		}
		b, _ := br.Peek(br.Buffered())
		if start := b[:min(len(b), len(statusLine))]; string(start) != statusLine[:len(start)] {
			return 0, c.failed(Malformed, true, &wire.Error{Code: 502, Message: "the answer does not start with a status line"})
		}
		n, next, bad := wire.HeadEnd(b, from)
		if bad == nil && n == 0 {
			from = next
			continue
		}
		if bad == nil {
			bad = cn.answer.Parse(b[:n])
		}
		if bad != nil {
			return 0, c.failed(Malformed, true, bad)
		}
		return n, nil
	}
}

const statusLine = "HTTP/1."

// noHead is the failure of reading a head of which have bytes came.
func (c *Client) noHead(have int, err error) *Error {
	if err == bufio.ErrBufferFull {
		return c.failed(Malformed, true, &wire.Error{Code: 502, Message: "the head of the answer is too large"})
	}
	e := c.ioFailed(true, err)
	if have == 0 && e.Kind == Broken {
		e.again = noAnswer
	}
	return e
}

// readLength reads a body of known length into resp.
func (c *Client) readLength(cn *conn, br *bufio.Reader, req *Request, resp *fasthttp.Response) *Error {
	n := int(cn.frame.left)
	var body []byte
	if n <= SmallBody {
		body = resp.SwapBody(nil)
	}
	if cap(body) < n {
		body = make([]byte, n)
	}
	body = body[:n]
	if err := c.fill(cn, br, req, body); err != nil {
		return err
	}
	if n <= SmallBody {
		resp.SwapBody(body)
	} else {
		resp.SetBodyRaw(body)
	}
	return nil
}

// fill reads as much of the body as there is room for in p.
func (c *Client) fill(cn *conn, br *bufio.Reader, req *Request, p []byte) *Error {
	for len(p) > 0 {
		if br.Buffered() == 0 {
			if err := cn.armRead(time.Now(), c.config.BodyTimeout, req.Deadline); err != nil {
				return c.ioFailed(true, err)
			}
		}
		n, err := cn.frame.read(br, p, true)
		if err != nil {
			return c.ioFailed(true, err)
		}
		p = p[n:]
	}
	return nil
}

// readUnknown reads a body of unknown length, to its end where it is wanted
// whole or that of an error, else as much as has arrived already: often that
// is all of it. The frame tells whether the end was reached.
func (c *Client) readUnknown(cn *conn, br *bufio.Reader, req *Request, body []byte) ([]byte, *Error) {
	limit := req.Whole
	if limit == 0 && cn.answer.Status >= 400 {
		limit = maxErrorBody
	}
	body = body[:0]
	for limit == 0 || int64(len(body)) <= limit {
		if limit == 0 && br.Buffered() == 0 {
			break
		}
		if len(body) == cap(body) {
			body = slices.Grow(body, max(br.Buffered(), 512, len(body)))
		}
		room := body[len(body):cap(body)]
		if limit > 0 {
			room = room[:min(int64(len(room)), limit+1-int64(len(body)))]
			if err := cn.armRead(time.Now(), c.config.BodyTimeout, req.Deadline); err != nil {
				return nil, c.ioFailed(true, err)
			}
		}
		n, err := cn.frame.read(br, room, limit > 0)
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, c.ioFailed(true, err)
		}
	}
	return body, nil
}
