package server

import (
	"errors"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
)

// continueBlock is the block of an answer 100 (Continue).
var continueBlock = string(h2.AppendStatus([]byte{h2.BlockStart}, []byte("100")))

// Send implements Exchange.
func (x *streamExchange) Send(m *message.Response) {
	x.unopened(m)
	first, rest := m.Message(x.headOnly, "")
	head := m.Head()
	if len(rest) == 0 {
		rest = first[len(head):]
	}
	x.answered = true
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	x.rest()
	x.sendHead(head, nil, len(rest) == 0)
	_ = x.sendData(rest, true) // the client is gone, and finish finds out
	s.flush()
	s.drainWithAnswer()
}

// sendHead sends the head of the answer, and what it says of trailers. The lock is held.
func (x *streamExchange) sendHead(head, trailer []byte, isEnd bool) {
	if x.client.HasLeft() {
		return
	}
	x.isEnded = isEnd
	x.endPlace()
	x.session.out.block(x.id, isEnd, x.session.frame, func(dst []byte) []byte {
		dst = h2.AppendAnswer(dst, head)
		if trailer != nil {
			dst = h2.AppendField(dst, []byte("trailer"), trailer)
		}
		return dst
	})
}

// sendData sends data as the windows allow. The last of it ends the stream. The lock is held, but not while it waits.
func (x *streamExchange) sendData(p []byte, isLast bool) error {
	s := x.session
	for len(p) > 0 || isLast && !x.isEnded {
		n, err := x.takeWindow(len(p))
		if err != nil {
			return err
		}
		isEnd := isLast && n == len(p)
		s.out.data(x.id, p[:n], isEnd)
		s.earned.Add(windowsOfData)
		x.isEnded = x.isEnded || isEnd
		x.endPlace()
		x.pace.took(n, 0, s.server.settings.Load().WriteTimeout)
		p = p[n:]
	}
	return nil
}

// takeWindow waits until something can be sent, and takes as much of the windows as a frame and n bytes need.
func (x *streamExchange) takeWindow(n int) (int, error) {
	s := x.session
	for {
		switch {
		case x.client.HasLeft() || s.out.closed:
			return 0, errClientLeft
		case len(s.out.pending) > pendingRoom:
			if s.flush(); len(s.out.pending) > pendingRoom {
				s.room.Wait() // whoever writes has a deadline
			}
			continue
		case n == 0:
			return 0, nil
		}
		taken := s.send.Take(min(n, s.frame))
		granted := x.send.Take(taken)
		s.send.Give(taken - granted)
		if granted > 0 {
			return granted, nil
		}
		if err := x.awaitWindow(n); err != nil {
			return 0, err
		}
	}
}

// awaitWindow waits for the client to read. It has to take n bytes in time.
func (x *streamExchange) awaitWindow(n int) error {
	s := x.session
	most := s.server.settings.Load().WriteTimeout
	begin := time.Now()
	until := begin.Add(x.pace.allows(n, most))
	for {
		if s.flush(); s.send.Available() > 0 && x.send.Available() > 0 || x.client.HasLeft() || s.out.closed {
			x.pace.took(0, time.Since(begin), most)
			return nil
		}
		if !x.await(until) {
			s.server.settings.Load().TooSlow()
			x.giveUp()
			return errors.Join(errClientLeft, errIdle)
		}
	}
}

// data adds a frame of data.
func (w *writer) data(id uint32, p []byte, isEnd bool) {
	flags := http2.Flags(0)
	if isEnd {
		flags = http2.FlagDataEndStream
	}
	w.frame(frameData, flags, id, p)
}

// SendStream implements Exchange. An answer that breaks off resets the stream.
func (x *streamExchange) SendStream(m *message.Response, flow Flow, e Editor, ahead *ReadAhead) (int64, error) {
	if x.unopened(m); !m.IsStream() {
		x.Send(m)
		return 0, nil
	}
	body, s := m.Stream(), x.session
	defer m.Close()
	head := m.StreamHead(e != nil, false, "")
	if x.headOnly {
		x.answered = true
		s.mu.Lock()
		defer s.mu.Unlock()
		x.rest()
		x.sendHead(head, nil, true)
		s.flush()
		s.drainWithAnswer()
		return 0, nil
	}
	x.answered = e == nil
	defer x.request.interruptible(body)()
	x.sending.setStream(body, flow)
	defer x.sending.setStream(nil, Whole)
	if flow != Whole && s.server.flows(x) {
		body.Interrupt()
	}
	out := &streamSender{exchange: x, head: head, body: body, hasTrailers: e == nil}
	if out.hasTrailers {
		out.trailer = m.Trailer()
	}
	answer := stream{server: s.server, out: out, answered: &x.answered, body: body, framing: byFrames,
		mayEndEarly: flow == Events}
	sent, err := answer.carry(e, ahead)
	if err == nil || !x.answered {
		return sent, err
	}
	return sent, x.broke(err, flow == Events)
}

// broke ends an answer whose body is not complete.
func (x *streamExchange) broke(err error, hasEvents bool) error {
	s := x.session
	x.Break(err)
	if !errors.Is(err, message.ErrInterrupted) {
		return err
	}
	if hasEvents && s.server.isStopping() && !errors.Is(err, errNoEvents) {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := x.sendData(nil, true)
		s.flush()
		return err
	}
	return errClientLeft
}

// A streamSender sends an answer whose body is a stream.
type streamSender struct {
	exchange *streamExchange
	head     []byte // nil once it was sent
	body     message.Stream
	// hasTrailers is set if the answer passes as it comes, so that its trailers do.
	hasTrailers bool
	trailer     []byte // what the head says of them; nil if it says nothing
}

// sendPart implements sender.
func (o *streamSender) sendPart(p []byte, isLast bool) error {
	x := o.exchange
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.head != nil {
		x.rest()
		x.sendHead(o.head, o.trailer, false)
		o.head = nil
	}
	var trailers []message.Header
	if isLast && o.hasTrailers {
		trailers = o.body.Trailers()
	}
	err := x.sendData(p, isLast && trailers == nil)
	if err == nil && trailers != nil {
		s.out.block(x.id, true, s.frame, func(dst []byte) []byte { return h2.AppendTrailers(dst, trailers) })
		x.isEnded = true
		x.endPlace()
	}
	s.flush()
	if isLast {
		s.drainWithAnswer()
	}
	return err
}
