package upstream

import (
	"bufio"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/presence"
)

// smallRequest is the size up to which head and body are copied together: that costs less than a
// vectored write.
const smallRequest = 8 << 10

// transport is what all connections to a backend share.
type transport struct {
	config  *Config
	pool    *pool
	readers sync.Pool // of *bufio.Reader
	scratch sync.Pool // of *[smallRequest]byte
	parts   sync.Pool // of *[uploadPart]byte
	streams sync.Pool // of *stream
	blocks  sync.Pool // of *[]byte
	answers sync.Pool // of *message.ResponseHead
	late    lateExchanges
	unended atomic.Uint64 // exchanges that run on, whose answer was too slow, and whose end was not seen
	surplus atomic.Uint64 // connections on which bytes came that were not asked for
}

// reader returns a buffer over the connection; it goes back to t.readers.
func (t *transport) reader(cn *conn) *bufio.Reader {
	if br, ok := t.readers.Get().(*bufio.Reader); ok {
		br.Reset(cn)
		return br
	}
	return bufio.NewReaderSize(cn, t.config.HeadBytes)
}

// write sends the request on a connection. sent reports whether a byte of it may have left.
func (t *transport) write(cn *conn, req *Request, s *slot) (sent bool, err error) {
	if err := cn.armWrite(s.now, req.answerTimeout(&t.config.Timeouts), s.deadline); err != nil {
		return false, err
	}
	if err := cn.armRead(s.now, req.answerTimeout(&t.config.Timeouts), s.deadline); err != nil {
		return false, err
	}
	if req.isAbandoned() {
		return false, presence.ErrLeft
	}
	if len(req.Body) == 0 || len(req.Head)+len(req.Body) > smallRequest {
		return cn.write(req.Head, req.Body)
	}
	scratch, ok := t.scratch.Get().(*[smallRequest]byte)
	if !ok {
		scratch = new([smallRequest]byte)
	}
	n := copy(scratch[copy(scratch[:], req.Head):], req.Body)
	sent, err = cn.write(scratch[:len(req.Head)+n], nil)
	t.scratch.Put(scratch)
	return sent, err
}
