package server

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h2"
)

// A writer is what a session has to send. Frames are added in the order in which they go out.
type writer struct {
	pending []byte
	memory  *[copyBuffer]byte // of pending, if it suffices
	pool    *buffers
	isBusy  bool // a goroutine writes
	closed  bool // nothing is written any more
	isLast  bool // the connection ends when all is written
}

// room is how much may be pending before who has data waits.
const pendingRoom = copyBuffer - dataFrame - 1024

// mostPending is how much may be pending at all: beyond it the client asks for more than it reads.
const mostPending = 1 << 20

// begin makes sure that there is memory.
func (w *writer) begin() {
	if w.pending == nil {
		w.memory = w.pool.copy()
		w.pending = w.memory[:0]
	}
}

// header adds the header of a frame.
func (w *writer) header(kind byte, flags http2.Flags, id uint32, length int) {
	w.begin()
	w.pending = h2.AppendFrame(w.pending, kind, byte(flags), id, length)
}

// frame adds a frame.
func (w *writer) frame(kind byte, flags http2.Flags, id uint32, payload []byte) {
	w.header(kind, flags, id, len(payload))
	w.pending = append(w.pending, payload...)
}

// uint32Frame adds a frame whose payload is a number.
func (w *writer) uint32Frame(kind byte, id, payload uint32) {
	w.header(kind, 0, id, 4)
	w.pending = binary.BigEndian.AppendUint32(w.pending, payload)
}

// block adds the frames of a block of fields, each at most so large. appendTo appends the block.
func (w *writer) block(id uint32, isEnd bool, most int, appendTo func(dst []byte) []byte) {
	flags := http2.FlagHeadersEndHeaders
	if isEnd {
		flags |= http2.FlagHeadersEndStream
	}
	w.begin()
	at := len(w.pending)
	w.header(frameHeaders, flags, id, 0)
	start := len(w.pending)
	w.pending = appendTo(w.pending)
	length := len(w.pending) - start
	if length <= most {
		w.pending[at], w.pending[at+1], w.pending[at+2] = byte(length>>16), byte(length>>8), byte(length)
		return
	}
	// The block is larger than a frame.
	rest := append([]byte(nil), w.pending[start:]...)
	w.pending = w.pending[:at]
	w.frame(frameHeaders, flags&^http2.FlagHeadersEndHeaders, id, rest[:most])
	for rest = rest[most:]; len(rest) > most; rest = rest[most:] {
		w.frame(frameContinuation, 0, id, rest[:most])
	}
	w.frame(frameContinuation, http2.FlagContinuationEndHeaders, id, rest)
}

// Types of frames (RFC 9113, 6).
const (
	frameData         = byte(http2.FrameData)
	frameHeaders      = byte(http2.FrameHeaders)
	frameReset        = byte(http2.FrameRSTStream)
	frameSettings     = byte(http2.FrameSettings)
	framePing         = byte(http2.FramePing)
	frameGoAway       = byte(http2.FrameGoAway)
	frameWindow       = byte(http2.FrameWindowUpdate)
	frameContinuation = byte(http2.FrameContinuation)
)

// flush writes what is pending, unless another goroutine does, which writes this too. The lock is held, but
// not while bytes are written.
func (s *session) flush() {
	w := &s.out
	if w.isBusy {
		return
	}
	w.isBusy = true
	for len(w.pending) > 0 && !w.closed {
		p, memory := w.pending, w.memory
		w.pending, w.memory = nil, nil
		s.mu.Unlock()
		_, err := s.conn.send(p)
		s.mu.Lock()
		if memory != nil {
			w.pool.putCopy(memory)
		}
		if s.room.Broadcast(); err != nil {
			s.writeFailed(err)
		}
	}
	w.isBusy = false
	if s.room.Broadcast(); w.isLast {
		s.wake()
	}
}

// flushAll is flush that waits if another goroutine writes: the connection ends then. The lock is held, but not while
// it waits.
func (s *session) flushAll() {
	s.flush()
	for s.out.isBusy || len(s.out.pending) > 0 && !s.out.closed {
		s.room.Wait()
		s.flush()
	}
}

// kick has what is pending written by another goroutine: who reads must not wait for the client to
// read.
func (s *session) kick() {
	if s.out.isBusy || len(s.out.pending) == 0 {
		return
	}
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flush()
	}()
}

// writeFailed ends the connection, whose client is gone or does not read.
func (s *session) writeFailed(err error) {
	s.out.closed = true
	if isTimeout(err) {
		s.server.settings.Load().TooSlow()
	}
	for _, x := range s.streams {
		x.giveUp()
	}
	s.conn.socket.close()
}

// windowUpdate lets the client send more in a window.
func (s *session) windowUpdate(id uint32, by int) {
	if by > 0 {
		s.out.uint32Frame(frameWindow, id, uint32(by))
	}
}

// reset ends a stream.
func (s *session) reset(id uint32, code http2.ErrCode) {
	s.out.uint32Frame(frameReset, id, uint32(code))
}

// goAway says which streams are served.
func (s *session) goAway(last uint32, code http2.ErrCode, why string) {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, uint32(code))
	s.out.frame(frameGoAway, 0, 0, append(payload, why...))
}
