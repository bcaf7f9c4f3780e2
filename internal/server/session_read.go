package server

import (
	"slices"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/message"
)

// A block is the fields of a head or of trailers while their frames come. No other frame comes
// between them.
type block struct {
	isOpen    bool
	since     time.Time
	id        uint32
	isEnd     bool            // of the stream
	stream    *streamExchange // whose head or trailers they are; nil if they are of no use
	isTrailer bool
	dropped   http2.ErrCode // why they are of no use; 0 if the stream is over
	isFull    bool          // because there is no memory for the stream
	frames    int
	size      int
}

// process does what a frame asks for.
func (s *session) process(f http2.Frame) error {
	if _, ok := f.(*http2.SettingsFrame); !ok && !s.hasSettings {
		return &sessionError{http2.ErrCodeProtocol, "a client must begin with settings"}
	}
	s.hasSettings = true
	switch f := f.(type) {
	case *http2.DataFrame:
		return s.data(f)
	case *http2.HeadersFrame:
		return s.headers(f)
	case *http2.ContinuationFrame:
		return s.continuation(f)
	case *http2.SettingsFrame:
		return s.changed(f)
	case *http2.WindowUpdateFrame:
		return s.window(f)
	case *http2.RSTStreamFrame:
		return s.resetBy(f)
	case *http2.PingFrame:
		return s.ping(f)
	case *http2.PushPromiseFrame:
		return &sessionError{http2.ErrCodeProtocol, "a client must not push"}
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.GoAwayFrame:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(true)
		return nil
	}
	return s.spend("frames without effect")
}

// spend counts a frame that carries nothing.
func (s *session) spend(what string) error {
	if s.frames.Spend(1, time.Now) {
		return nil
	}
	if s.frames.Earn(int(s.earned.Swap(0))); s.frames.Spend(1, time.Now) {
		return nil
	}
	return s.tooMuch(what)
}

// spendReset counts a stream that had work done for nothing.
func (s *session) spendReset(what string) error {
	all, a := &s.server.accounts, s.conn.account
	if s.resets.Spend(1, time.Now) && (s.conn.peer.IsTrusted || all.spendReset(a)) {
		return nil
	}
	answered := int(s.answered.Swap(0))
	a.earnResets(answered)
	if s.resets.Earn(answered); s.resets.Spend(1, time.Now) && (s.conn.peer.IsTrusted || all.spendReset(a)) {
		return nil
	}
	return s.tooMuch(what)
}

// headers begins a block: of a request, or of the trailers of one.
func (s *session) headers(f *http2.HeadersFrame) error {
	if f.HasPriority() && f.Priority.StreamDep == f.StreamID {
		return &sessionError{http2.ErrCodeProtocol, "a stream must not depend on itself"}
	}
	s.block = block{isOpen: true, since: time.Now(), id: f.StreamID, isEnd: f.StreamEnded()}
	s.mu.Lock()
	err := s.openStream()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	b := &s.block
	most := s.conn.options.HeadBytes
	var memory []byte
	if b.stream != nil && !b.isTrailer {
		memory = b.stream.text
	}
	s.requests.Begin(memory, most, b.isTrailer, !b.isEnd)
	return s.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
}

// openStream finds the stream of a block, or opens it.
func (s *session) openStream() error {
	b := &s.block
	if x := s.find(b.id); x != nil {
		switch {
		case x.isBodyOver:
			return &sessionError{http2.ErrCodeStreamClosed, "a stream that the client has ended must not go on"}
		case !b.isEnd:
			return &sessionError{http2.ErrCodeProtocol, "trailers must end their stream"}
		}
		b.stream, b.isTrailer = x, true
		return nil
	}
	if b.id%2 == 0 {
		return &sessionError{http2.ErrCodeProtocol, "a client must open streams of odd numbers"}
	}
	if b.id <= s.last {
		was, isKnown := s.wasClosed(b.id)
		switch {
		case isKnown && was.isOurs:
			b.isTrailer = true // that may have been on their way
			return s.spend("frames on streams that are over")
		case isKnown:
			return &sessionError{http2.ErrCodeStreamClosed, "a stream that is over must not go on"}
		}
		return &sessionError{http2.ErrCodeProtocol, "a client must open streams in the order of their numbers"}
	}
	s.last = b.id
	if b.dropped = s.refusesStream(); b.dropped != 0 {
		return nil
	}
	if o := s.server.settings.Load(); o != s.conn.adopted {
		s.conn.adopt(o)
	}
	b.stream = s.newStream(b.id)
	return nil
}

// refusesStream returns why no further stream is served; 0 if one is. What is refused was not
// processed, so that the client may send it again.
func (s *session) refusesStream() http2.ErrCode {
	switch {
	case s.leaving.isLast(s.block.id), s.open >= s.maxStreams(), len(s.streams) >= 2*s.maxStreams():
		return http2.ErrCodeRefusedStream
	case !s.takeStream():
		s.block.isFull = true
		s.server.settings.Load().Overloaded(RefusedStream)
		return http2.ErrCodeRefusedStream
	}
	return 0
}

// wasClosed returns what is known of a stream that is over.
func (s *session) wasClosed(id uint32) (closedStream, bool) {
	e := s.closed[id/2%uint32(len(s.closed))]
	return e, e.id == id
}

// continuation goes on with a block.
func (s *session) continuation(f *http2.ContinuationFrame) error {
	return s.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
}

// fragment reads a part of a block, and goes on with what the block says if it is the last part.
func (s *session) fragment(p []byte, isLast bool) error {
	b := &s.block
	b.frames++
	if b.size += len(p); b.frames > continuations || b.size > 2*s.conn.options.HeadBytes {
		return s.tooMuch("bytes of a head")
	}
	if err := s.requests.Write(p); err != nil {
		return &sessionError{http2.ErrCodeCompression, err.Error()}
	}
	if !isLast {
		return nil
	}
	b.isOpen = false
	text, bad, err := s.requests.End()
	switch x := b.stream; {
	case err != nil:
		return &sessionError{http2.ErrCodeCompression, err.Error()}
	case x == nil && b.dropped != 0:
		return s.drop()
	case x == nil:
		return nil
	case b.isTrailer:
		return s.trailers(x, text, bad)
	default:
		return s.request(x, text, bad)
	}
}

// drop refuses the stream of the block.
func (s *session) drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteEnded(s.block.id, true)
	s.reset(s.block.id, s.block.dropped)
	s.kick()
	if s.block.isFull { // for which the client need not be at fault
		return s.spend("streams for which there is no memory")
	}
	return s.spendReset("streams at a time")
}

func (s *session) noteEnded(id uint32, isOurs bool) {
	s.closed[id/2%uint32(len(s.closed))] = closedStream{id, isOurs}
}

// request has the handler serve a request. The head of a GET says not always that it has no body: an
// empty frame may end the stream.
func (s *session) request(x *streamExchange, text []byte, bad error) error {
	x.text = text
	x.isExtended = s.requests.Protocol() != ""
	head := &x.request.Head
	if bad == nil {
		if failed := head.Parse(text, s.conn.options); failed != nil {
			x.request.Refusal = refusalOf(failed)
		}
	} else {
		x.request.Refusal, x.isMalformed = refusalOf(bad), true
	}
	if x.request.Refusal != nil {
		head.Salvage(text)
	}
	head.IsHTTP2 = true
	x.headOnly = string(head.Method) == "HEAD"
	s.mu.Lock()
	defer s.mu.Unlock()
	x.length = head.ContentLength
	if x.isExtended {
		x.length = -1 // what follows are the bytes of the other protocol
	}
	if s.conn.peer.IsTrusted && !s.charge(x) {
		return nil
	}
	if s.block.isEnd {
		x.isBodyOver = true
		if x.length > 0 {
			x.malformed(errOtherLength)
			return nil
		}
	} else if x.length < 0 && !x.isExtended && x.request.Refusal == nil && isWithoutBody(head.Method) {
		// Wait until it shows whether there is a body.
		x.late = time.AfterFunc(s.server.settings.Load().HeadTimeout, func() { s.startLate(x, x.id) })
		return nil
	}
	s.start(x)
	return nil
}

// isWithoutBody reports whether a request of that method has no body, as a rule.
func isWithoutBody(method []byte) bool { return string(method) == "GET" || string(method) == "HEAD" }

// startLate starts a stream whose client has not said whether there is a body.
func (s *session) startLate(x *streamExchange, id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(id) == x && !x.isStarted {
		x.isStarted = true
		s.workers.serve(x)
	}
}

// start has the handler called for a stream, once all is read that the client has sent by now.
func (s *session) start(x *streamExchange) {
	if x.isStarted = true; x.late != nil {
		x.late.Stop()
	}
	x.isReady = true
	s.ready = append(s.ready, x)
}

// launch has the handler called for the streams that are ready, each by a goroutine that serves no other one.
func (s *session) launch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.ready {
		x.isReady, s.ready[i] = false, nil
		s.workers.serve(x)
	}
	s.ready = s.ready[:0]
}

// unready takes back the start of a stream whose handler was not called. It reports whether that was so.
func (s *session) unready(x *streamExchange) bool {
	if !x.isReady {
		return false
	}
	for i := len(s.ready) - 1; i >= 0; i-- { // most are reset soon
		if s.ready[i] == x {
			s.ready = slices.Delete(s.ready, i, i+1)
		}
	}
	x.isReady = false
	return true
}

// trailers ends a body that has fields behind it.
func (s *session) trailers(x *streamExchange, text []byte, bad error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bad == nil {
		trailers, err := message.ParseTrailers(text)
		if err == nil {
			x.trailers = trailers
			return s.endBody(x)
		}
		bad = err
	}
	x.malformed(refusalOf(bad))
	return nil
}

// data takes a part of a body.
func (s *session) data(f *http2.DataFrame) error {
	n, id := int(f.Length), f.StreamID
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.receive.Receive(n) {
		return &sessionError{http2.ErrCodeFlowControl, "the client sent more than the window of the connection"}
	}
	s.windowUpdate(0, s.receive.Consume(n))
	defer s.kick()
	x := s.find(id)
	if x == nil {
		switch was, isKnown := s.wasClosed(id); {
		case id > s.last || id%2 == 0:
			return &sessionError{http2.ErrCodeProtocol, "data on a stream that was not opened"}
		case isKnown && was.isOurs:
			return s.spend("frames on streams that are over")
		}
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	}
	switch {
	case x.isMalformed:
		return s.spend("frames on streams that are over")
	case x.isBodyOver:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	}
	if !x.receive.Receive(n) {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
	}
	if len(f.Data()) == 0 && !f.StreamEnded() {
		if err := s.spend("frames without data"); err != nil {
			return err
		}
	}
	x.take(f.Data())
	s.windowUpdate(id, x.receive.Consume(n-len(f.Data()))) // what fills a frame up is read at once
	if f.StreamEnded() {
		return s.endBody(x)
	}
	if !x.isStarted && len(f.Data()) > 0 {
		s.start(x)
	}
	return nil
}

// endBody notes that the client has ended a stream.
func (s *session) endBody(x *streamExchange) error {
	x.isBodyOver = true
	x.endPlace()
	if x.length >= 0 && x.got != x.length {
		x.malformed(errOtherLength)
	}
	if !x.isStarted {
		if x.got == 0 {
			x.request.Head.NoBody()
			x.length = 0
		}
		s.start(x)
	}
	x.changed.Broadcast()
	return nil
}

// changed takes the client's settings into force.
func (s *session) changed(f *http2.SettingsFrame) error {
	if err := s.spend("settings"); err != nil || f.IsAck() {
		return err
	}
	if f.NumSettings() > 64 {
		return s.tooMuch("settings")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := f.ForeachSetting(func(one http2.Setting) error {
		if err := one.Valid(); err != nil {
			return err
		}
		switch one.ID {
		case http2.SettingInitialWindowSize:
			return s.resize(int64(one.Val))
		case http2.SettingMaxFrameSize:
			s.frame = dataFrame // which any client takes
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.out.header(frameSettings, http2.FlagSettingsAck, 0, 0)
	s.kick()
	return nil
}

// resize changes the windows of all streams.
func (s *session) resize(initial int64) error {
	by := initial - s.initial
	s.initial = initial
	for _, x := range s.streams {
		if !x.send.Add(by) {
			return &sessionError{http2.ErrCodeFlowControl, "a window must not be larger than 2^31-1"}
		}
		x.changed.Broadcast()
	}
	return nil
}

// window makes a window larger.
func (s *session) window(f *http2.WindowUpdateFrame) error {
	if err := s.spend("windows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.StreamID == 0 {
		if !s.send.Add(int64(f.Increment)) {
			return &sessionError{http2.ErrCodeFlowControl, "a window must not be larger than 2^31-1"}
		}
		s.room.Broadcast()
		for _, x := range s.streams {
			x.changed.Broadcast()
		}
		return nil
	}
	x := s.find(f.StreamID)
	switch {
	case x == nil && (f.StreamID > s.last || f.StreamID%2 == 0):
		return &sessionError{http2.ErrCodeProtocol, "a window of a stream that was not opened"}
	case x == nil:
		return nil
	case !x.send.Add(int64(f.Increment)):
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	x.changed.Broadcast()
	return nil
}

// giveUp ends a stream that is no longer waited for. One whose handler was not called yet is dropped. The lock is held.
func (s *session) giveUp(x *streamExchange) {
	if x.giveUp(); !x.isStarted || s.unready(x) {
		s.remove(x)
	}
}

// resetBy ends a stream that the client does not wait for any more. Once its handler was called it keeps its place
// until that returns, so that a client cannot have more work done than its streams allow.
func (s *session) resetBy(f *http2.RSTStreamFrame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.find(f.StreamID)
	if x == nil {
		if f.StreamID > s.last || f.StreamID%2 == 0 {
			return &sessionError{http2.ErrCodeProtocol, "a reset of a stream that was not opened"}
		}
		return s.spend("resets of streams that are over")
	}
	x.isReset = true
	if s.conn.peer.IsTrusted {
		a := s.server.accounts.open(s.server.clientOf(&x.request.Head, s.conn.peer.Addr))
		s.server.accounts.spendReset(a)
		a.close()
	}
	s.giveUp(x)
	return s.spendReset("streams that were reset")
}

// ping answers, or goes on with a shutdown that has asked.
func (s *session) ping(f *http2.PingFrame) error {
	if err := s.spend("pings"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.IsAck() {
		if f.Data == leavingPing {
			s.leaveNow()
		}
		return nil
	}
	if len(s.out.pending) > mostPending {
		return s.tooMuch("pings whose answers the client does not read")
	}
	s.out.frame(framePing, http2.FlagPingAck, 0, f.Data[:])
	s.kick()
	return nil
}

// frameRefused ends a stream for a frame of it.
func (s *session) frameRefused(err http2.StreamError) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset(err.StreamID, err.Code)
	if x := s.find(err.StreamID); x != nil {
		x.isReset, x.isEndedHere = true, true
		s.giveUp(x)
	}
	s.kick()
	return s.spendReset("faults of streams")
}
