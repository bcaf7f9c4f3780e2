package server

import (
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/stack"
	"github.com/admission-gateway/gateway/internal/status"
)

// A streamExchange is a request and its answer on a stream of HTTP/2. It implements Exchange. One
// goroutine serves it; the reader of the session gives it what comes.
type streamExchange struct {
	session *session
	request Request
	peer    Peer   // a copy: other streams of the connection are served at the same time
	text    []byte // of the head
	id      uint32
	sending sending
	pace    pace
	upload  *streamUpload
	size    int    // of a body that was read whole
	later   func() // what the handler has left to be done; nil if that is nothing

	headOnly    bool // the answer has no body
	answered    bool // the answer, or its first part, went out
	isDetached  bool
	isExtended  bool // the request is an extended CONNECT
	isMalformed bool // by the rules of HTTP/2, which ends the stream
	isEnded     bool // the gateway has ended its side of the stream

	brokenBy http2.ErrCode // ends an answer that is not complete

	client presence.Client

	// The lock of the session guards what follows.
	changed     sync.Cond
	isStarted   bool
	isReady     bool           // and its handler was not called
	isAwaited   bool           // by a shutdown
	hasPlace    bool           // among the streams that are open to the client
	cost        int            // of the memory for requests
	account     *clientAccount // of the client behind a trusted proxy, if the stream is counted for it
	late        *time.Timer    // starts it
	isReset     bool           // by the client, or for what the client has sent
	isEndedHere bool           // by the gateway
	receive     h2.ReceiveWindow
	send        h2.SendWindow
	body        streamBody
	isBodyOver  bool
	length      int64 // of the body; -1 if it is not known
	got         int64 // of the body
	trailers    []message.Header
}

// errOtherLength is the fault of a body that is not as long as its head says.
var errOtherLength = status.BadRequest("the body of the request is not as long as 'Content-Length' says")

// newStream makes the exchange of a stream.
func (s *session) newStream(id uint32) *streamExchange {
	var x *streamExchange
	if n := len(s.free); n > 0 {
		x, s.free = s.free[n-1], s.free[:n-1]
	} else {
		x = &streamExchange{peer: s.conn.peer}
	}
	// Memory, and what the handler keeps for the connection, stay.
	kept := x.peer.Kept
	verdict := x.peer.verdict
	*x = streamExchange{session: s, request: Request{Head: x.request.Head}, peer: s.conn.peer, text: x.text[:0], id: id,
		brokenBy: http2.ErrCodeInternal}
	x.peer.Kept, x.peer.verdict = kept, verdict
	x.changed.L = &s.mu
	x.receive, x.send = h2.NewReceiveWindow(streamWindow), h2.NewSendWindow(s.initial)
	o := s.server.settings.Load()
	x.pace = pace{rate: o.MinReadRate, credit: o.WriteTimeout}
	x.request.open(o.Memory, &x.peer, x, &x.client)
	x.body.budget, x.cost = o.Memory.Budget, requestBytes
	x.setHolder(s.conn.credit.by)
	s.streams = append(s.streams, x)
	s.open++
	x.hasPlace = true
	return x
}

// serve calls the handler, and ends the stream. What the handler has left for later may go on for hours, and does so on
// a goroutine of its own, because the stack of this one has grown by all that the handler did. It implements work.
func (x *streamExchange) serve() {
	if x.client.HasLeft() { // before anything was done
		x.end()
		return
	}
	stack.Widen()
	x.do(x.session.server.handle)
	if x.later != nil {
		x.lasts()
		go func() {
			x.do(x.goOn)
			x.end()
		}()
		return
	}
	x.end()
}

// do does a part of the handler's work, and answers for it if it panics.
func (x *streamExchange) do(part func(*Request)) {
	defer func() {
		if p := recover(); p != nil {
			x.session.server.panicked(&x.request, p)
		}
	}()
	part(&x.request)
}

// GoOn implements Exchange.
func (x *streamExchange) GoOn(later func()) { x.later = later }

// goOn does what the handler has left for later.
func (x *streamExchange) goOn(*Request) { x.later() }

// end ends the use of the stream.
func (x *streamExchange) end() {
	x.request.close()
	x.finish()
}

// finish ends the stream, whatever state it is in, and gives its place to others.
func (x *streamExchange) finish() {
	s := x.session
	s.mu.Lock()
	isAwaited := x.isAwaited // the exchange may be another stream's once the lock is given back
	defer func() {
		s.mu.Unlock()
		if isAwaited {
			s.server.release(x)
		}
	}()
	code := http2.ErrCodeNo
	switch {
	case x.isReset || s.out.closed:
		code = 0
	case !x.isEnded:
		code = x.brokenBy
	case x.isMalformed:
		code = http2.ErrCodeProtocol
	}
	if !x.isReset && !s.out.closed && (!x.isEnded || x.isMalformed || !x.isBodyOver) {
		x.isEndedHere = true
		s.reset(x.id, code)
	}
	if x.isEnded && !x.isReset {
		s.earned.Add(earned)
		s.answered.Add(1)
	}
	s.remove(x)
	s.flush()
}

// endPlace gives the place of a stream to others once both sides have ended it: the client need not wait until the
// handler has returned. A stream that the client resets keeps its place until then, so that no client has more work
// done than its streams allow. The lock is held.
func (x *streamExchange) endPlace() {
	if x.hasPlace && x.isEnded && x.isBodyOver {
		x.hasPlace = false
		x.session.open--
	}
}

// remove gives the place of a stream to others.
func (s *session) remove(x *streamExchange) {
	if i := slices.Index(s.streams, x); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
	}
	if x.hasPlace {
		x.hasPlace = false
		s.open--
	}
	x.giveUp()
	x.body.release()
	s.noteEnded(x.id, x.isEndedHere)
	s.giveStream(x)
	s.lastUse = time.Now()
	if len(s.free) < freeStreams && !s.server.Draining() { // a shutdown may still ask about the exchange
		s.free = append(s.free, x)
	}
	if len(s.streams) == 0 {
		s.leaveIfEmpty()
	}
	s.room.Broadcast()
}

// freeStreams is how many exchanges a connection keeps for streams to come.
const freeStreams = 16

// giveUp makes whoever waits for the stream stop. The lock is held.
func (x *streamExchange) giveUp() {
	x.client.Leave()
	if x.body.err == nil && !x.isBodyOver {
		x.body.err = bodyCut()
	}
	x.changed.Broadcast()
}

// malformed refuses a request for what its body is. The lock is held.
func (x *streamExchange) malformed(why error) {
	x.isMalformed, x.isBodyOver = true, true
	if !x.isStarted {
		var bad *status.Error
		if errors.As(why, &bad) {
			x.request.Refusal = bad
		}
		x.session.start(x)
	}
	x.body.fail(why)
	x.changed.Broadcast()
}

// await waits until something has changed, at most until a time, which may be zero. It reports whether there is time
// left. The lock is held.
func (x *streamExchange) await(until time.Time) bool {
	if until.IsZero() {
		x.changed.Wait()
		return true
	}
	left := time.Until(until)
	if left <= 0 {
		return false
	}
	timer := time.AfterFunc(left, func() {
		x.session.mu.Lock()
		defer x.session.mu.Unlock()
		x.changed.Broadcast()
	})
	defer timer.Stop()
	x.changed.Wait()
	return true
}

// Linger implements Exchange. A stream ends without the others.
func (x *streamExchange) Linger() {}

// Detach implements Exchange. The head is in memory of the stream's own.
func (x *streamExchange) Detach() { x.isDetached = true }

// IsDetached implements Exchange.
func (x *streamExchange) IsDetached() bool { return x.isDetached }

// Break implements Exchange.
func (x *streamExchange) Break(err error) bool {
	reset, is := errors.AsType[*h2.ResetError](err)
	if !is || !x.request.Head.IsGRPC() || reset.Code == http2.ErrCodeHTTP11Required {
		// which concerns the next hop alone
		return false
	}
	x.brokenBy = reset.Code
	return true
}

// Answered implements Exchange.
func (x *streamExchange) Answered() bool { return x.answered }

// noteAwaited implements ongoing. The lock of the session is held.
func (x *streamExchange) noteAwaited() { x.isAwaited = true }

// flow implements ongoing.
func (x *streamExchange) flow() Flow { return x.sending.of() }

// endLasting implements ongoing.
func (x *streamExchange) endLasting() bool { return x.sending.interrupt(Lasting) }

// cut implements ongoing.
func (x *streamExchange) cut() {
	x.sending.interrupt(x.sending.of())
	go func() { // the caller must not wait for the session
		x.session.mu.Lock()
		defer x.session.mu.Unlock()
		x.giveUp()
	}()
}
