package upstream

import (
	"bufio"
	"io"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// maxErrorBody is up to what size the bodies of errors are read whole whatever their framing, for they are small and may
// have to be reworded.
const maxErrorBody = SmallBody

// reception is the reading of one answer.
type reception struct {
	*transport
	cn   *conn
	held *connection // whose slot the exchange uses
	br   *bufio.Reader
	req  *Request
	resp *message.Response
	// sending is the request, if it is still being sent; nil if it was sent before.
	sending *sending
}

// receive reads the answer. A body that is to be streamed comes back as one.
func (r *reception) receive() (*Body, error) {
	n, err := readHead(r.cn, r.br)
	if err != nil {
		return nil, err
	}
	r.sending.answered()
	cn, req := r.cn, r.req
	a := &cn.answer
	if a.Status == 101 {
		return nil, switchProtocol(cn, r.br, req, n)
	}
	if req.Upgrade != nil {
		a.Close = true // what the backend may read on the connection as the new protocol is not known
	}
	if a.NoBody(req.HeadOnly) && (a.Chunked || a.ContentLength > 0) {
		a.Close = true // a backend that sends the body that it announces, later, would answer the next request with it
	}
	cn.frame = frameOf(a, req.HeadOnly)
	if cn.frame.kind == frameClose {
		a.Close = true
	}
	b, _ := r.br.Peek(n)
	r.resp.Receive(a.Status, b[a.Compact(b):])
	_, _ = r.br.Discard(n)
	stream, err := r.takeBody()
	if stream != nil || err != nil {
		return stream, err
	}
	return nil, r.checkSurplus()
}

// takeBody reads the body, or returns it as a stream.
func (r *reception) takeBody() (*Body, error) {
	cn, req := r.cn, r.req
	switch f := &cn.frame; {
	case f.kind == frameNone:
		return nil, nil
	case f.kind == frameLength && req.Whole > 0 && f.left > req.Whole:
		return nil, newError(TooLarge, true, nil)
	case f.kind == frameLength && f.left <= SmallBody:
		return nil, r.fill(r.resp.Extend(int(f.left)))
	case f.kind == frameLength && req.Whole > 0:
		return nil, r.readLarge(int(f.left))
	case f.kind == frameLength:
		return r.newBody(nil, req.bodyTimeout(&r.config.Timeouts)), nil
	}
	body, err := r.readUnknown(r.resp.Spare())
	switch {
	case err != nil:
		return nil, err
	case cn.frame.done() && len(body) <= SmallBody:
		r.resp.SetBody(body)
	case cn.frame.done():
		r.resp.SetBorrowedBody(body)
	case req.Whole > 0:
		return nil, newError(TooLarge, true, nil)
	default:
		r.resp.DropSpare() // the stream has it
		return r.newBody(body, r.config.Timeouts.Stream), nil
	}
	return nil, nil
}

// checkSurplus makes sure that nothing follows the answer. A server that sent more than it
// announced, and one that answers a request that was not sent, cannot be distinguished.
func (r *reception) checkSurplus() error {
	if r.cn.frame.kind == frameClose {
		return nil
	}
	surplus, end := r.cn.buffered()
	r.cn.answer.Close = r.cn.answer.Close || end
	if surplus || r.br.Buffered() > 0 {
		return malformed("bytes follow the end of the answer")
	}
	return nil
}

// readLarge reads a body of known length that is not small.
func (r *reception) readLarge(n int) error {
	if !r.req.grant(n) {
		return newError(NoMemory, true, nil)
	}
	body := make([]byte, n)
	if err := r.fill(body); err != nil {
		r.req.giveBack(n)
		return err
	}
	r.resp.SetBorrowedBody(body)
	return nil
}

// fill reads as much of the body as there is room for in p.
func (r *reception) fill(p []byte) error {
	for len(p) > 0 {
		if r.br.Buffered() == 0 {
			if err := r.armBody(); err != nil {
				return err
			}
		}
		n, err := r.cn.readBody(r.br, p, true)
		if err != nil {
			return ioFailed(true, err)
		}
		p = p[n:]
	}
	return nil
}

// armBody sets the deadline of a read of a body that is read whole.
func (r *reception) armBody() error {
	if err := r.cn.armRead(time.Now(), r.req.bodyTimeout(&r.config.Timeouts), r.req.Deadline); err != nil {
		return ioFailed(true, err)
	}
	return nil
}

// readUnknown reads a body of unknown length: to its end if it is wanted whole or is an error's, else as much as has
// arrived already, which often is all of it. The frame knows whether the end was reached.
func (r *reception) readUnknown(body []byte) (_ []byte, failure error) {
	granted := 0
	defer func() {
		switch keep := len(body); {
		case granted == 0:
		case failure != nil || keep <= SmallBody:
			r.req.giveBack(granted)
		default:
			r.req.giveBack(granted - keep)
		}
	}()
	limit := r.req.Whole
	if limit == 0 && r.cn.answer.Status >= 400 {
		limit = maxErrorBody
	}
	body = body[:0]
	for limit == 0 || int64(len(body)) <= limit {
		if limit == 0 && len(body) >= r.config.HeadBytes {
			break // it is no small one: the rest needs no memory of its own
		}
		if len(body) == cap(body) {
			more := max(r.br.Buffered(), 512, len(body))
			if limit > 0 && len(body)+more > SmallBody {
				if !r.req.grant(len(body) + more) {
					return nil, newError(NoMemory, true, nil)
				}
				r.req.giveBack(granted)
				granted = len(body) + more
			}
			body = slices.Grow(body, more)
		}
		room := body[len(body):cap(body)]
		if limit > 0 {
			room = room[:min(int64(len(room)), limit+1-int64(len(body)))]
			if err := r.armBody(); err != nil {
				return nil, err
			}
		}
		n, err := r.cn.readBody(r.br, room, limit > 0)
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if limit == 0 && (n == 0 || err != nil) && !isMalformed(err) {
			break // a connection that has broken is found broken again behind what came
		}
		if err != nil {
			return nil, ioFailed(true, err)
		}
	}
	return body, nil
}
