package h2conn

import (
	"errors"
	"io"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
)

// Run reads the connection until it ends. It must be called once, on a goroutine of its own.
func (c *Conn) Run(events Events) {
	c.events = events
	c.mu.Lock()
	if c.err == nil {
		c.liveness.timer = time.AfterFunc(c.config.period(), c.look)
	}
	c.mu.Unlock()
	for {
		frame, err := c.framer.ReadFrame()
		if err == nil {
			err = c.receive(frame)
		}
		if err == nil {
			continue
		}
		if err = c.failed(err); err != nil {
			c.mu.Lock()
			c.end(err)
			c.mu.Unlock()
			c.events.Last()
			return
		}
	}
}

// failed ends a stream for a fault of it, or says to the server why the connection ends, and returns why.
func (c *Conn) failed(err error) error {
	var one http2.StreamError
	if errors.As(err, &one) {
		if err = c.streamFailed(one); err == nil {
			return nil
		}
	}
	var all http2.ConnectionError
	switch {
	case errors.As(err, &all):
		c.leave(http2.ErrCode(all))
	case err == errFlooded:
		c.leave(http2.ErrCodeEnhanceYourCalm)
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// receive takes a frame. A StreamError ends a stream, any other error the connection.
func (c *Conn) receive(frame http2.Frame) error {
	var last, resized bool
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.liveness.hear(c.out.begun)
	err := error(nil)
	switch f := frame.(type) {
	case *http2.DataFrame:
		err = c.receiveData(f)
	case *http2.HeadersFrame:
		err = c.beginBlock(f)
	case *http2.ContinuationFrame:
		if err = c.spend(); err == nil {
			err = c.continueBlock(f.HeaderBlockFragment(), f.HeadersEnded())
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			before := c.server.streams
			if err = c.spend(); err == nil {
				err = c.set(f)
			}
			resized = c.server.streams != before
		}
	case *http2.WindowUpdateFrame:
		err = c.widen(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			if err = c.spend(); err == nil {
				_ = c.framer.WritePing(true, f.Data)
			}
		}
	case *http2.RSTStreamFrame:
		err = c.reset(f)
	case *http2.GoAwayFrame:
		last = true
		c.serverLeaves(f)
	case *http2.PushPromiseFrame:
		err = http2.ConnectionError(http2.ErrCodeProtocol) // it was forbidden
	default:
		err = c.spend()
	}
	if err == nil && len(c.out.pending) > maxBehind {
		err = errBehind
	}
	c.flushApart()
	streams := c.server.streams
	c.mu.Unlock()
	switch {
	case err != nil:
	case last, resized && streams == 0:
		c.events.Last()
	case resized:
		c.events.Streams(streams)
	}
	return err
}

// spend takes the credit for a frame that carries nothing.
func (c *Conn) spend() error {
	if !c.guard.Spend(1, time.Now) {
		return errFlooded
	}
	return nil
}

// receiveData takes data for a stream.
func (c *Conn) receiveData(f *http2.DataFrame) error {
	size, data := int(f.Length), f.Data() // padding counts for the windows
	if !c.arrived.Receive(size) {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if update := c.arrived.Consume(size); update > 0 {
		_ = c.framer.WriteWindowUpdate(0, uint32(update))
	}
	if len(data) == 0 && !f.StreamEnded() {
		if err := c.spend(); err != nil {
			return err
		}
	}
	s := c.streams.find(f.StreamID)
	switch {
	case s == nil && c.streams.isIdle(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return c.spend() // the stream was closed while the data were on their way
	case s.err != nil:
		return nil
	case s.remote == before:
		return c.refuse(s, malformed("the answer has a body before its head"))
	case s.remote != underWay:
		return c.refuse(s, malformed("the answer goes on behind its end"))
	case !s.window.Receive(size):
		s.fail(Malformed, malformed("the answer has more bytes than the server was allowed to send"))
		_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeFlowControl)
		return nil
	}
	c.guard.Earn(len(data) / 1024)
	if !s.data.put(data, c.config.Memory) {
		s.fail(Broken, ErrNoMemory)
		_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeCancel)
		return nil
	}
	s.consume(size - len(data))
	if f.StreamEnded() {
		s.ended()
	} else {
		s.receiver.wake()
	}
	return nil
}

// ended notes that the answer is complete.
func (s *Stream) ended() {
	s.remote = over
	s.receiver.wake()
	s.sender.wake()
}

// refuse ends a stream whose answer breaks the rules of messages (RFC 9113, 8.1.1).
func (c *Conn) refuse(s *Stream, flaw error) error {
	s.fail(Malformed, flaw)
	_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeProtocol)
	return nil
}

// beginBlock takes the start of a head, or of trailers.
func (c *Conn) beginBlock(f *http2.HeadersFrame) error {
	if c.streams.isIdle(f.StreamID) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s := c.streams.find(f.StreamID)
	c.block = block{stream: f.StreamID, isTrailer: s != nil && s.remote != before, isEnd: f.StreamEnded()}
	c.answers.Begin(c.text, c.block.isTrailer)
	return c.continueBlock(f.HeaderBlockFragment(), f.HeadersEnded())
}

// continueBlock takes a part of a block.
func (c *Conn) continueBlock(fragment []byte, isLast bool) error {
	if c.block.size += len(fragment); c.block.size > 2*c.config.HeadBytes+pieceSize {
		return errFlooded
	}
	if err := c.answers.Write(fragment); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	if !isLast {
		return nil
	}
	text, bad, err := c.answers.End()
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	s := c.streams.find(c.block.stream)
	if bad == nil {
		c.text = text
	}
	switch {
	case s == nil:
		return c.spend() // the stream was closed while the block was on its way
	case s.err != nil:
		return nil
	case s.remote == over:
		return c.refuse(s, malformed("the answer goes on behind its end"))
	case bad != nil:
		return c.refuse(s, bad)
	case c.block.isTrailer:
		return c.receiveTrailers(s, text)
	}
	return c.receiveHead(s, text)
}

// receiveTrailers takes the fields behind a body.
func (c *Conn) receiveTrailers(s *Stream, text []byte) error {
	if !c.block.isEnd {
		return c.refuse(s, malformed("the answer goes on behind its trailers"))
	}
	trailers, err := message.ParseTrailers(text)
	if err != nil {
		return c.refuse(s, malformed("the answer has trailers that are not valid"))
	}
	s.trailers = trailers
	s.ended()
	return nil
}

// receiveHead takes the head of an answer, which may be an interim one.
func (c *Conn) receiveHead(s *Stream, text []byte) error {
	if text[len("HTTP/1.1 ")] == '1' {
		return c.receiveInterim(s, text)
	}
	if n := len(c.heads); s.head == nil && n > 0 {
		s.head, c.heads = c.heads[n-1], c.heads[:n-1]
	}
	s.head = append(s.head[:0], text...)
	s.remote = underWay
	c.guard.Earn(16)
	if c.block.isEnd {
		s.ended()
	} else {
		s.receiver.wake()
	}
	return nil
}

// maxInterim bounds the 1xx answers before the final one.
const maxInterim = 16

// receiveInterim takes a head that another one follows.
func (c *Conn) receiveInterim(s *Stream, text []byte) error {
	var a message.ResponseHead
	err := a.Parse(text)
	switch s.interims++; {
	case err != nil:
		return c.refuse(s, err)
	case a.Status == 101:
		return c.refuse(s, malformed("the answer switches to another protocol, which HTTP/2 does not do"))
	case c.block.isEnd:
		return c.refuse(s, malformed("the answer ends with an informational one"))
	case s.interims > maxInterim:
		return c.refuse(s, malformed("too many informational answers"))
	}
	return nil
}

// set takes the server's settings, and confirms them.
func (c *Conn) set(f *http2.SettingsFrame) error {
	err := f.ForeachSetting(func(one http2.Setting) error {
		if err := one.Valid(); err != nil {
			return err
		}
		switch one.ID {
		case http2.SettingEnablePush:
			if one.Val != 0 {
				return http2.ConnectionError(http2.ErrCodeProtocol) // a server cannot be pushed to
			}
		case http2.SettingMaxConcurrentStreams:
			c.server.streams = int(min(one.Val, assumedStreams))
		case http2.SettingMaxFrameSize:
			c.server.frame = int(min(one.Val, maxPending))
		case http2.SettingInitialWindowSize:
			return c.setWindow(int64(one.Val))
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.wakeSenders()
	return c.framer.WriteSettingsAck()
}

// setWindow changes the windows of all streams by what changes of the first size (RFC 9113, 6.9.2).
func (c *Conn) setWindow(size int64) error {
	delta := size - c.server.window
	c.server.window = size
	for _, s := range c.streams.open {
		if !s.room.Add(delta) {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	}
	return nil
}

// widen takes more room to send in.
func (c *Conn) widen(f *http2.WindowUpdateFrame) error {
	if err := c.spend(); err != nil {
		return err
	}
	if f.StreamID == 0 {
		if !c.window.Add(int64(f.Increment)) {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.wakeSenders()
		return nil
	}
	switch s := c.streams.find(f.StreamID); {
	case s == nil && c.streams.isIdle(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil || s.err != nil:
	case !s.room.Add(int64(f.Increment)):
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeFlowControl}
	default:
		s.sender.wake()
	}
	return nil
}

// reset takes the end of a stream by the server.
func (c *Conn) reset(f *http2.RSTStreamFrame) error {
	s := c.streams.find(f.StreamID)
	switch {
	case s == nil && c.streams.isIdle(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return c.spend()
	case f.ErrCode == http2.ErrCodeHTTP11Required && s.remote == before:
		s.fail(HTTP1Required, &h2.ResetError{Code: f.ErrCode})
	case f.ErrCode == http2.ErrCodeRefusedStream && s.remote == before:
		s.fail(NotProcessed, &h2.ResetError{Code: f.ErrCode})
	default:
		s.fail(Broken, &h2.ResetError{Code: f.ErrCode})
	}
	return nil
}

// serverLeaves takes the server's word that it takes no more streams, and which of those that are open it has not taken
// (RFC 9113, 6.8).
func (c *Conn) serverLeaves(f *http2.GoAwayFrame) {
	debug := f.DebugData()
	cause := &goAwayError{f.ErrCode, string(debug[:min(len(debug), 128)])}
	if c.left = &(Error{Kind: NotProcessed, Cause: cause}); f.ErrCode == http2.ErrCodeHTTP11Required {
		c.left.Kind = HTTP1Required
	}
	for _, s := range c.streams.open {
		if s.id > f.LastStreamID && s.remote == before {
			s.fail(c.left.Kind, cause)
		}
	}
}

// streamFailed ends a stream in which the server broke the rules of frames.
func (c *Conn) streamFailed(failure http2.StreamError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams.find(failure.StreamID)
	switch {
	case s == nil && c.streams.isIdle(failure.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return c.spend()
	case s.err == nil:
		s.fail(Malformed, malformed("the answer breaks the rules of HTTP/2"))
		_ = c.framer.WriteRSTStream(s.id, failure.Code)
		c.flushApart()
	}
	return nil
}
