package server

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/secure"
	"github.com/admission-gateway/gateway/internal/status"
)

// A session is the connection of a client that speaks HTTP/2. The goroutine of the connection reads
// frames. Each stream has a goroutine of the session's worker pool, which calls the handler. A goroutine that has
// frames to send adds them to what is pending; one of them at a time writes all of that.
//
// All that streams hold of what the client sends is of the budget for requests; what the client can
// have us do beyond that is bounded by guards.
type session struct {
	conn   *conn
	server *Server

	// What follows is the reader's alone.
	framer      *http2.Framer
	requests    *h2.RequestReader
	block       block         // whose frames are being read
	frames      h2.FloodGuard // that carry nothing
	resets      h2.FloodGuard // of streams
	isInside    bool          // of a frame
	hasSettings bool          // of the client
	lingers     bool          // the client may be sending when the connection ends
	closed      [32]closedStream
	ready       []*streamExchange // whose handlers are called once all is read that has come
	workers     *workerPool

	mu      sync.Mutex // guards what follows, and what streams say that it guards
	streams []*streamExchange
	open    int               // of the streams that the client knows to be open, or has reset
	spare   int               // streams for which there is memory
	free    []*streamExchange // for streams to come
	last    uint32            // the highest stream that was opened
	receive h2.ReceiveWindow  // of the connection
	send    h2.SendWindow
	room    sync.Cond // broadcast when the window, or the room for what is pending, has grown

	initial int64 // window of streams that is the client's
	frame   int   // the largest frame that the client takes
	out     writer

	leaving leaving
	hasLeft atomic.Bool // the reader has to end the connection

	hasSpare atomic.Bool // spare is not 0

	earned, answered atomic.Int64 // credit for the guards that streams have earned
	over             bool         // the connection is at its end
	lastUse          time.Time
}

// A closedStream is one that was opened and is over.
type closedStream struct {
	id uint32
	// isOurs is set if the gateway has ended it, so that frames of it may still come.
	isOurs bool
}

// Sizes that a client of HTTP/2 learns of by settings.
const (
	// streamWindow is how much of a body a client sends before anything is read of it. It is what the
	// protocol begins with.
	streamWindow = h2.InitialWindow
	// sessionWindow is the same for all streams of a connection. The budget for requests bounds what
	// is held, so that the window of the connection needs no such care.
	sessionWindow = 1 << 20
	// dataFrame is the largest frame that the gateway takes, and the largest that it sends: any
	// client takes that.
	dataFrame = 16 << 10

	defaultStreams = 128
)

// newSession makes a session of the client's connection, which takes its place among the server's.
func newSession(c *conn) *session {
	now := time.Now()
	s := &session{
		conn: c, server: c.server, workers: c.server.workers.next(), requests: h2.NewRequestReader(), lastUse: now,
		frames:  h2.NewFloodGuard(emptyFrames, emptyFramesPerSecond, now),
		resets:  h2.NewFloodGuard(resetStreams, resetStreamsPerSecond, now),
		receive: h2.NewReceiveWindow(h2.InitialWindow), send: h2.NewSendWindow(h2.InitialWindow),
		initial: h2.InitialWindow, frame: dataFrame,
	}
	s.room.L = &s.mu
	s.out.pool = &c.server.buffers
	s.framer = http2.NewFramer(nil, sessionInput{s})
	s.framer.SetMaxReadFrameSize(dataFrame)
	s.framer.SetReuseFrames()
	c.server.replace(c, s)
	c.server.disconnects.remove(c)
	return s
}

// Bounds of what a client can have us do for nothing. A stream that is answered earns some of it back.
const (
	emptyFrames, emptyFramesPerSecond   = 10_000, 1000
	resetStreams, resetStreamsPerSecond = 200, 50
	// earned is what a stream that was answered earns: the windows and priorities that belong to it.
	earned = 20
	// windowsOfData is what a frame of data earns that is sent: the client opens two windows again.
	windowsOfData = 2
	// continuations bounds the frames of a block; its bytes are bounded too.
	continuations = 64
)

// serve reads frames until the connection ends.
func (s *session) serve() {
	defer s.end()
	if !s.begin() {
		return
	}
	for {
		f, err := s.framer.ReadFrame()
		s.isInside = false
		if err == nil {
			err = s.process(f)
		}
		if err != nil && s.answerTo(err) != nil {
			return
		}
	}
}

// preface is what a client of HTTP/2 begins with (RFC 9113, 3.4), prefaceLine the part that looks like a head of
// HTTP/1.1.
const (
	prefaceLine = "PRI * HTTP/2.0\r\n\r\n"
	preface     = prefaceLine + "SM\r\n\r\n"
)

// mayBeginHTTP2 reports whether the client may go on by HTTP/2 without having asked: before its first request, where
// there is no TLS by which it would have asked.
func (c *conn) mayBeginHTTP2() bool {
	o := c.server.settings.Load()
	return !c.hasServed && !c.at.HasTLS() && !o.HTTP2.IsOff
}

// hasAgreedOnHTTP2 reports whether the client has asked for HTTP/2 by TLS.
func (c *conn) hasAgreedOnHTTP2() bool {
	over, ok := c.socket.Conn.(*secure.Conn)
	return ok && over.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS
}

// begin reads the client's preface, and sends the gateway's.
func (s *session) begin() bool {
	settings := s.settings()
	s.mu.Lock()
	s.out.frame(frameSettings, 0, 0, settings)
	s.windowUpdate(0, s.receive.Grow(sessionWindow))
	s.kick()
	s.mu.Unlock()
	if !s.conn.credit.need(connectionBytes + sessionBytes) {
		s.server.settings.Load().Overloaded(RefusedConnection)
		_ = s.answerTo(&sessionError{http2.ErrCodeEnhanceYourCalm, whyFull})
		return false
	}
	if over, ok := s.conn.socket.Conn.(*secure.Conn); ok && !over.MayCarryHTTP2() {
		_ = s.answerTo(&sessionError{http2.ErrCodeInadequateSecurity,
			"HTTP/2 forbids the cipher suite of TLS 1.2 that was agreed on"})
		return false
	}
	first := make([]byte, len(preface))
	s.isInside = true
	_, err := io.ReadFull(sessionInput{s}, first)
	s.isInside = false
	return err == nil && string(first) == preface
}

// maxStreams is how many streams the client may have at a time.
func (s *session) maxStreams() int { return s.server.settings.Load().HTTP2.MaxConcurrentStreams }

// settings returns the payload of the gateway's settings.
func (s *session) settings() []byte {
	var b []byte
	for _, one := range []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: uint32(s.maxStreams())},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(s.conn.options.HeadBytes)},
		{ID: http2.SettingEnableConnectProtocol, Val: 1},
	} {
		b = append(b, byte(one.ID>>8), byte(one.ID), byte(one.Val>>24), byte(one.Val>>16), byte(one.Val>>8),
			byte(one.Val))
	}
	return b
}

// A sessionError ends the connection.
type sessionError struct {
	code http2.ErrCode
	why  string
}

func (e *sessionError) Error() string { return e.code.String() + ": " + e.why }

// tooMuch returns the error of a client that sends too much of something.
func (s *session) tooMuch(what string) error {
	s.server.settings.Load().HTTP2.Flooded()
	return &sessionError{http2.ErrCodeEnhanceYourCalm, "too many " + what}
}

// answerTo answers to what is wrong with what was read. It returns an error if the connection ends.
func (s *session) answerTo(err error) error {
	var ofStream http2.StreamError
	var ofConn http2.ConnectionError
	var own *sessionError
	switch {
	case errors.As(err, &ofStream):
		if err = s.frameRefused(ofStream); err == nil {
			return nil
		}
		errors.As(err, &own)
	case errors.As(err, &own):
	case errors.As(err, &ofConn):
		own = &sessionError{code: http2.ErrCode(ofConn)}
		if detail := s.framer.ErrorDetail(); detail != nil {
			own.why = detail.Error()
		}
	case errors.Is(err, http2.ErrFrameTooLarge):
		own = &sessionError{http2.ErrCodeFrameSize, "a frame must not be larger than the settings say"}
	case isTimeout(err) && s.block.isOpen:
		own = &sessionError{http2.ErrCodeEnhanceYourCalm, "the head of a request did not arrive in time"}
	case isTimeout(err):
		own = &sessionError{http2.ErrCodeNo, "the connection was idle"}
	default:
		return err // the client is gone
	}
	s.lingers = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goAway(s.last, own.code, own.why)
	s.flushAll()
	if own.code != http2.ErrCodeNo {
		s.server.settings.Load().Log.Debug("a connection of HTTP/2 ends for what its client sent", "peer",
			s.conn.peer.IP, "cause", own.Error())
	}
	return own
}

// end ends the connection, and all streams that are left.
func (s *session) end() {
	s.mu.Lock()
	s.over = true
	s.out.closed = true
	for _, x := range slices.Clone(s.streams) {
		s.giveUp(x)
	}
	s.room.Broadcast()
	s.mu.Unlock()
	if s.lingers && !s.server.isStopping() {
		s.server.lingering.await(s.conn)
	}
	_ = s.conn.socket.Close()
	s.mu.Lock()
	for len(s.streams) > 0 || s.out.isBusy {
		s.room.Wait()
	}
	s.giveSpare(0)
	s.mu.Unlock()
	s.conn.account.earnResets(int(s.answered.Swap(0)))
	s.conn.in.giveBack()
	s.conn.unregister()
	s.conn.rest()
	s.server.remove(s)
}

// find returns the stream of that number, nil if it is not open.
func (s *session) find(id uint32) *streamExchange {
	i, found := slices.BinarySearchFunc(s.streams, id,
		func(x *streamExchange, id uint32) int { return int(int64(x.id) - int64(id)) })
	if !found {
		return nil
	}
	return s.streams[i]
}

// sessionInput is what the client sends, as the framer reads it.
type sessionInput struct{ *session }

// Read waits for bytes, without a buffer between frames, and for as long as the client may take.
func (in sessionInput) Read(p []byte) (int, error) {
	s, from := in.session, &in.conn.in
	if from.isUsed() {
		if err := s.wait(); err != nil {
			return 0, err
		}
	}
	s.isInside = true
	n := copy(p, from.buf[from.r:from.w])
	from.r += n
	return n, nil
}

// wait waits until the client has sent something.
func (s *session) wait() error {
	if len(s.ready) > 0 {
		s.launch()
	}
	o := s.server.settings.Load()
	from := &s.conn.in
	for {
		begin := time.Now()
		patience := o.IdleTimeout
		switch {
		case s.block.isOpen:
			patience = time.Until(s.block.since.Add(o.HeadTimeout))
		case s.isInside:
			patience = o.BodyTimeout
		case s.hasSpare.Load():
			patience = min(patience, sparePatience)
		}
		s.conn.socket.armRead(max(patience, time.Millisecond))
		if s.hasLeft.Load() {
			s.lingers = true
			return io.EOF
		}
		from.r, from.w = 0, 0
		_ = from.await() // how long it took says whether the client has gone
		if from.w > 0 {
			return nil
		}
		if time.Since(begin) < patience {
			s.lingers = s.hasLeft.Load()
			return io.EOF
		}
		if !s.isInside && !s.block.isOpen && s.isSilent() {
			continue
		}
		if s.isInside || s.block.isOpen || s.isIdle(o.IdleTimeout) {
			return errIdle
		}
	}
}

// errIdle is the error of a client that sends nothing for too long.
var errIdle net.Error = idleError{}

type idleError struct{}

func (idleError) Error() string   { return "the client sent nothing for too long" }
func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return false }

// isIdle reports whether no stream has been open for so long.
func (s *session) isIdle(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) == 0 && time.Since(s.lastUse) >= d/2
}

// refusalOf returns the answer to a request that cannot be read in one way only.
func refusalOf(bad error) *status.Error {
	of := &message.Error{Code: 400, Message: bad.Error()}
	errors.As(bad, &of)
	return status.Coded(of.Code, of.Message)
}
