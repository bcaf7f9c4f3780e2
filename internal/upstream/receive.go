package upstream

import (
	"io"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
)

// maxErrorBody is the size up to which the bodies of errors are read whole in any framing, for they
// are small and may have to be reworded.
const maxErrorBody = SmallBody

// bodyReceiver takes the body of an answer, once its head is there.
type bodyReceiver struct {
	config *Config
	from   bodySource
	req    *Request
	resp   *message.Response
	// sending sends the request, if it is still being sent; nil if it was sent before.
	sending *uploadSender
	status  int
	length  int64 // of the body; -1 if it is not known
}

// takeBody reads the body, or returns it as a stream.
func (r *bodyReceiver) takeBody() (*Body, error) {
	switch req := r.req; {
	case r.length == 0:
		return nil, nil
	case r.length > 0 && req.Whole > 0 && r.length > req.Whole:
		return nil, newError(TooLarge, true, nil)
	case r.length > 0 && r.length <= SmallBody:
		return nil, r.fill(r.resp.Extend(int(r.length)))
	case r.length > 0 && req.Whole > 0:
		return nil, r.readLarge(int(r.length))
	case r.length > 0, r.wanted() == 0 && r.isLong():
		return r.newBody(nil), nil
	}
	body, err := r.readUnknown(r.resp.Spare())
	switch {
	case err != nil:
		return nil, err
	case r.from.isOver() && len(body) <= SmallBody:
		r.resp.SetBody(body)
	case r.from.isOver():
		r.resp.SetBorrowedBody(body)
	case r.req.Whole > 0:
		return nil, newError(TooLarge, true, nil)
	default:
		r.resp.DropSpare() // the stream has it
		return r.newBody(body), nil
	}
	return nil, nil
}

// wanted returns how long a body may be that is read whole, whatever its framing; 0 if none is.
func (r *bodyReceiver) wanted() int64 {
	if r.req.Whole == 0 && r.status >= 400 {
		return maxErrorBody
	}
	return r.req.Whole
}

// isLong reports whether too much of a body has come for it to be a small one, which is read whole.
func (r *bodyReceiver) isLong() bool {
	return r.from.hasMore() || r.from.buffered() >= r.config.HeadBytes
}

// readLarge reads a body of known length that is not small.
func (r *bodyReceiver) readLarge(n int) error {
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
func (r *bodyReceiver) fill(p []byte) error {
	for len(p) > 0 {
		if r.from.buffered() == 0 {
			if err := r.armBody(); err != nil {
				return err
			}
		}
		n, err := r.from.read(p, true)
		if err != nil {
			return ioFailed(true, err)
		}
		p = p[n:]
	}
	return nil
}

// armBody sets the deadline of a read of a body that is read whole.
func (r *bodyReceiver) armBody() error {
	if err := r.from.arm(time.Now(), r.req.bodyTimeout(&r.config.Timeouts), r.req.Deadline); err != nil {
		return ioFailed(true, err)
	}
	if r.req.isAbandoned() {
		return newError(Abandoned, true, presence.ErrLeft)
	}
	return nil
}

// readUnknown reads a body of unknown length: to its end if it is wanted whole or is an error's, else as much as has
// arrived already, which often is all of it. The source knows whether the end was reached.
func (r *bodyReceiver) readUnknown(body []byte) (_ []byte, failure error) {
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
	limit := r.wanted()
	body = body[:0]
	for limit == 0 || int64(len(body)) <= limit {
		if limit == 0 && len(body) >= r.config.HeadBytes {
			break // it is no small one: the rest needs no memory of its own
		}
		if len(body) == cap(body) {
			more := max(min(r.from.buffered(), r.config.HeadBytes), 512, len(body))
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
		n, err := r.from.read(room, limit > 0)
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
