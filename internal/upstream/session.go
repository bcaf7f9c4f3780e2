package upstream

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
)

// session is a connection of HTTP/2 to the backend. It is a link with as many slots as the backend allows streams.
type session struct {
	conn      *h2conn.Conn
	transport *transport
	scheme    string
	held      *connection
}

// begin implements link.
func (s *session) begin(held *connection) {
	s.held = held
	pool := s.transport.pool
	go s.conn.Run(h2conn.Events{
		Streams: func(n int) { pool.resize(held, n) },
		Last:    func() { pool.spend(held) },
	})
}

// isStale implements link.
func (s *session) isStale() bool { return s.conn.IsLast() }

// Close implements link.
func (s *session) Close() error { return s.conn.Close() }

// roundTrip implements link.
func (s *session) roundTrip(sl slot, req *Request, resp *message.Response) error {
	if req.Client.HasLeft() {
		s.transport.pool.put(sl.conn, !s.conn.IsLast(), balance.Inconclusive, time.Now())
		return newError(Abandoned, false, presence.ErrLeft)
	}
	x := s.stream(sl.conn, req)
	body, sending, err := x.exchange(&sl, resp)
	switch {
	case err != nil:
		sending.end()
		err = req.orAbandoned(sending.orFailed(err))
		if s.transport.watches(req, err, x.isSent && x.status == 0) {
			x.watch(err, outcomeOf(err, req, sl.isFresh))
			return err
		}
		x.release(false, outcomeOf(err, req, sl.isFresh))
		return err
	case body != nil:
		s.transport.pool.answered(sl.conn, outcomeOfStatus(x.status, req))
		resp.SetStream(body)
		return nil
	}
	x.release(sending.finish(), outcomeOfStatus(x.status, req))
	return nil
}

// exchange sends the request and takes the answer.
func (x *stream) exchange(sl *slot, resp *message.Response) (*Body, *uploadSender, error) {
	if err := x.open(); err != nil {
		return nil, nil, err
	}
	if !x.req.await(x) {
		return nil, nil, newError(Abandoned, true, presence.ErrLeft)
	}
	defer x.req.done()
	sending, err := x.send(sl)
	if err != nil {
		return nil, sending, err
	}
	x.isSent = true
	body, err := x.receive(bodyReceiver{config: x.session.transport.config, from: x, req: x.req, resp: resp,
		sending: sending})
	return body, sending, err
}

// Abandon implements presence.Waiter. The stream is reset when who waits for the answer has returned.
func (x *stream) Abandon() {
	x.on.StopSending()
	x.on.Interrupt()
}

// stream is a round trip on a session. It implements source and outlet.
type stream struct {
	session *session
	held    *connection // whose slot it uses
	req     *Request
	on      *h2conn.Stream // nil if it could not be opened

	status int         // of the answer
	by     time.Time   // what bounds reads
	isRead atomic.Bool // bytes of the upload were read
	isSent bool        // the request, but for an upload
}

// stream returns a stream for a request.
func (s *session) stream(held *connection, req *Request) *stream {
	x, ok := s.transport.streams.Get().(*stream)
	if !ok {
		x = &stream{}
	}
	x.session, x.held, x.req, x.status, x.isSent = s, held, req, 0, false
	x.isRead.Store(false)
	return x
}

// isUpload reports whether the body is sent while it comes.
func (x *stream) isUpload() bool { return x.req.Upload != nil && x.req.Upload.Length() != 0 }

// open opens the stream, by the head of the request.
func (x *stream) open() error {
	req, t := x.req, x.session.transport
	block, ok := t.blocks.Get().(*[]byte)
	if !ok {
		block = new([]byte)
	}
	*block = h2.AppendRequest((*block)[:0], req.Head, x.session.scheme)
	on, err := x.session.conn.Open(*block, !x.isUpload() && len(req.Body) == 0)
	t.blocks.Put(block)
	if err != nil {
		return x.failed(err)
	}
	x.on = on
	return nil
}

// send sends the rest of the request. An upload is still being sent when it returns.
func (x *stream) send(s *slot) (*uploadSender, error) {
	req, t, on := x.req, x.session.transport, x.on
	if x.isUpload() {
		on.BoundHead(req.Deadline)
		on.Flush()
		return t.begin(x, req), nil
	}
	patience := req.answerTimeout(&t.config.Timeouts)
	on.BoundHead(bound(s.now, patience, s.deadline))
	if !s.deadline.IsZero() {
		patience = min(patience, time.Until(s.deadline))
	}
	if len(req.Body) > 0 {
		// A backend that does not take the body to its end may have answered.
		if err := on.Send(req.Body, true, patience); err != nil && isTimeout(err) {
			return nil, x.failed(err)
		}
	}
	return nil, nil
}

// bound returns when a step ends that takes at most d, or ends at by, if that is set and earlier.
func bound(now time.Time, d time.Duration, by time.Time) time.Time {
	until, _ := armed(time.Time{}, now, d, by)
	return until
}

// receive takes the answer. A body that is to be streamed comes back as one.
func (x *stream) receive(r bodyReceiver) (*Body, error) {
	head, err := x.on.Head()
	if err != nil {
		return nil, x.failed(err)
	}
	r.sending.answered()
	if err := x.takeHead(&r, head); err != nil {
		return nil, err
	}
	x.on.Expect(r.length)
	body, err := r.takeBody()
	if body != nil || err != nil {
		return body, err
	}
	if err := x.checkEnd(&r); err != nil {
		return nil, err
	}
	if r.req.Whole == 0 && len(x.on.Trailers()) > 0 {
		return r.newBody(append([]byte(nil), r.resp.Body()...)), nil // only a stream has trailers
	}
	return nil, nil
}

// takeHead takes the head of the answer. Its memory is not used any more when it returns.
func (x *stream) takeHead(r *bodyReceiver, head []byte) error {
	t := x.session.transport
	a, ok := t.answers.Get().(*message.ResponseHead)
	if !ok {
		a = new(message.ResponseHead)
	}
	defer t.answers.Put(a)
	if err := a.Parse(head); err != nil {
		return newError(Malformed, true, err)
	}
	x.status = a.Status
	r.status, r.length = a.Status, a.ContentLength
	if a.NoBody(r.req.HeadOnly) {
		r.length = 0
	}
	r.resp.ReceiveParsed(a, head)
	if a.Trailer != nil {
		r.resp.SetTrailer(a.Trailer)
	}
	return nil
}

// checkEnd makes sure that the answer ends where its body does.
func (x *stream) checkEnd(r *bodyReceiver) error {
	if x.isOver() {
		return nil
	}
	if err := r.armBody(); err != nil {
		return err
	}
	var beyond [1]byte
	switch n, err := x.read(beyond[:], true); {
	case n > 0:
		return malformed("bytes follow the end of the answer")
	case !x.isOver():
		return ioFailed(true, err)
	}
	return nil
}

// failed is the failure to get the head of an answer.
func (x *stream) failed(err error) error {
	failure := ioFailed(true, err)
	var of *h2conn.Error
	if failure.Kind != Broken || !errors.As(err, &of) {
		return failure
	}
	if of.Kind == h2conn.HTTP1Required {
		failure.message = "the backend takes the request by HTTP/1.1 alone"
	}
	if of.Kind == h2conn.NotProcessed || of.Kind == h2conn.HTTP1Required {
		failure.Sent = false // the backend has not processed it
	}
	if x.isRead.Load() {
		return failure
	}
	switch of.Kind {
	case h2conn.NotSent:
		failure.Sent, failure.retry = false, notSent
	case h2conn.NotProcessed:
		failure.retry = refused
	case h2conn.HTTP1Required:
		failure.retry = byHTTP1
	case h2conn.Broken:
		failure.retry = noAnswer
	}
	return failure
}

// arm implements source.
func (x *stream) arm(now time.Time, d time.Duration, by time.Time) error {
	x.by = bound(now, d, by)
	return nil
}

// read implements source.
func (x *stream) read(p []byte, wait bool) (int, error) { return x.on.Read(p, wait, x.by) }

// buffered implements source.
func (x *stream) buffered() int { return x.on.Arrived() }

// hasMore implements source.
func (x *stream) hasMore() bool { return false }

// isOver implements source.
func (x *stream) isOver() bool { return x.on.IsOver() }

// wait implements source.
func (x *stream) wait() error { return x.on.Wait(x.by) }

// prepare implements source. The goroutine of the connection decrypts.
func (x *stream) prepare() {}

// interrupt implements source.
func (x *stream) interrupt() { x.on.Interrupt() }

// trailers implements source.
func (x *stream) trailers() []message.Header { return x.on.Trailers() }

// release implements source.
func (x *stream) release(_ bool, o balance.Outcome) {
	s, held := x.session, x.held
	if x.on != nil {
		x.on.Close()
	}
	x.session, x.held, x.req, x.on = nil, nil, nil, nil
	s.transport.streams.Put(x)
	s.transport.pool.put(held, !s.conn.IsLast(), o, time.Now())
}

// sendPart implements outlet.
func (x *stream) sendPart(part *[uploadPart]byte, n int, isLast bool, req *Request) error {
	x.isRead.Store(true)
	data, patience := part[uploadRoom:uploadRoom+n], req.bodyTimeout(&x.session.transport.config.Timeouts)
	if isLast {
		if trailers := req.Upload.Trailers(); len(trailers) > 0 {
			if err := x.on.Send(data, false, patience); err != nil {
				return err
			}
			return x.on.SendTrailers(h2.AppendTrailers(nil, trailers))
		}
	}
	return x.on.Send(data, isLast, patience)
}

// boundAnswer implements outlet.
func (x *stream) boundAnswer(d time.Duration) { x.on.BoundHead(time.Now().Add(d)) }

// answered implements outlet. What bounds the head bounds nothing else.
func (x *stream) answered() {}

// breakOff implements outlet. The stream is reset when the one who waits for the answer has returned.
func (x *stream) breakOff() { x.on.Interrupt() }

// stopSending implements outlet.
func (x *stream) stopSending() { x.on.StopSending() }
